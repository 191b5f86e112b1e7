package bench

import (
	"fmt"
	"testing"
)

// A maker builds a pipeline of n parts once and returns a function that runs it.
type maker[T any] = func(n int, first T) (func() (T, error), error)

// A liner makes a line of steps.
type liner[T any] struct {
	name string
	make maker[T]
	most int // steps beyond which it needs minutes; 0 is no limit
}

// BenchmarkSequence is a line of steps, each of which reads the content of the previous
// one and produces the next. Peers pass on a pointer, so a type that is not flat makes no
// difference to them.
func BenchmarkSequence(b *testing.B) {
	b.Run("small", func(b *testing.B) { sequence(b, aSmall, true) })
	b.Run("1KB", func(b *testing.B) { sequence(b, aKilo, true) })
	b.Run("1KB-nested", func(b *testing.B) { sequence(b, aNest, false) })
}

func sequence[T content[T]](b *testing.B, first T, peers bool) {
	lines := []liner[T]{{"floor", floorSequence[T], 0}, {"stone", stoneSequence[T], 0}}
	if peers {
		lines = append(lines, peerLiners[T]()...)
	}
	for _, steps := range []int{100, 100_000} {
		for _, who := range lines {
			if who.most > 0 && steps > who.most {
				continue
			}
			b.Run(fmt.Sprintf("%d/%s", steps, who.name), func(b *testing.B) {
				run, err := who.make(steps, first)
				if err != nil {
					b.Fatal(err)
				}
				measure(b, steps, "step", func() error {
					last, err := run()
					if err == nil && last.count() != steps {
						err = fmt.Errorf("%d of %d steps ran", last.count(), steps)
					}
					return err
				})
			})
		}
	}
}
