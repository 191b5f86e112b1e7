package bench

import (
	"fmt"
	"testing"
)

// batch is a fan-out's input, item a lane's input, result a lane's output, and total the fan-out's output.
type (
	batch struct {
		Lanes int `json:"lanes"`
	}
	item struct {
		N int `json:"n"`
	}
	result struct {
		N       int  `json:"n"`
		Square  int  `json:"square"`
		Settled bool `json:"settled"`
	}
	total struct {
		Lanes int `json:"lanes"`
	}
)

func (b batch) items() []item {
	items := make([]item, b.Lanes)
	for i := range items {
		items[i].N = i
	}
	return items
}

func (i item) work() result { return result{N: i.N, Square: i.N * i.N, Settled: true} }

// A fanner makes a fan-out of a number of lanes.
type fanner struct {
	name string
	make func(lanes int) (func() (int, error), error)
	most int // lanes beyond which the peer needs minutes or all memory; 0 is no limit
}

// BenchmarkFanOut is a fan-out whose lanes have one step each. Stone and the floor write
// a marker and a result for each lane; in addition, Stone joins the lanes and reads the
// results.
func BenchmarkFanOut(b *testing.B) {
	for _, lanes := range []int{1_000, 10_000, 1_000_000} {
		for _, who := range append([]fanner{{"floor", floorFanOut, 0}, {"stone", stoneFanOut, 0}}, peerFanners...) {
			if who.most > 0 && lanes > who.most {
				continue
			}
			b.Run(fmt.Sprintf("%d/%s", lanes, who.name), func(b *testing.B) {
				run, err := who.make(lanes)
				if err != nil {
					b.Fatal(err)
				}
				work := func() error {
					done, err := run()
					if err == nil && done != lanes {
						err = fmt.Errorf("%d of %d lanes have a result", done, lanes)
					}
					return err
				}
				measure(b, lanes, "lane", work)
				if lanes == 1_000_000 {
					peakMemory(b, work)
				}
			})
		}
	}
}
