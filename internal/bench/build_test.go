package bench

import (
	"fmt"
	"strconv"
	"testing"
)

// A builder makes a line of steps with the names.
type builder struct {
	path  string
	build func(names []string) error
	most  int // steps beyond which the peer needs minutes; 0 is no limit
}

// BenchmarkBuild makes a line of steps and checks it as far as each library does, without
// running it. The names are made beforehand. In same, one type is written and read, as by
// the peers. In schemas, writers and readers each have their own type, and the schemas
// are compared.
func BenchmarkBuild(b *testing.B) {
	for _, steps := range []int{1_000, 100_000} {
		names := stepNames(steps)
		for _, who := range append([]builder{{"same/%d/stone", stoneBuild, 0}, {"schemas/%d/stone", stoneBuildSchemas, 0}}, peerBuilders...) {
			if who.most > 0 && steps > who.most {
				continue
			}
			b.Run(fmt.Sprintf(who.path, steps), func(b *testing.B) {
				measure(b, steps, "ashlar", func() error { return who.build(names) })
			})
		}
	}
}

func stepNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "step" + strconv.Itoa(i)
	}
	return names
}
