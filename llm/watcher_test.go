package llm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// slow is the definition of the detector: a count for every window.
func slow(text []byte, n, threshold int) *RepetitionHit {
	seen := map[string]int{}
	for end := n; end <= len(text); end++ {
		w := string(text[end-n : end])
		if seen[w]++; seen[w] >= threshold {
			return &RepetitionHit{Kind: "ngram", Window: []byte(w), Position: int64(end)}
		}
	}
	return nil
}

func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rng.Uint32())
	}
	return b.String()[:n]
}

func TestNGram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	phrase := words(rng, 100)
	fill := func() string { return words(rng, 57) }
	for _, c := range []struct {
		name string
		text string
		want int64 // position of the trip, 0 for none
	}{
		{"one byte", strings.Repeat("a", 200), 103},
		{"short loop", strings.Repeat("abc", 100), 109},
		{"loop of a hundred", strings.Repeat(phrase, 5), 400},
		{"three times is no loop", strings.Repeat(phrase, 3), 0},
		{"far apart", phrase + fill() + phrase + fill() + phrase + fill() + phrase, 571},
		{"a byte short", strings.Repeat(phrase[:99]+"|", 3) + phrase[:99] + "?", 0},
		{"99 bytes, then something else", func() string {
			var s string
			for i := range 50 {
				s += phrase[:99] + string([]byte{byte(128 + i)})
			}
			return s
		}(), 0},
		{"long random text", words(rng, 100_000), 0},
	} {
		var byByte, whole NGram
		for _, b := range []byte(c.text) {
			byByte.Add(b)
		}
		whole.Write([]byte(c.text))
		for _, hit := range []*RepetitionHit{byByte.Tripped(), whole.Tripped()} {
			switch {
			case hit == nil && c.want != 0:
				t.Errorf("%s: no trip, want one at %d", c.name, c.want)
			case hit != nil && hit.Position != c.want:
				t.Errorf("%s: trip at %d, want %d", c.name, hit.Position, c.want)
			case hit != nil && string(hit.Window) != c.text[c.want-100:c.want]:
				t.Errorf("%s: window %q is not the text's", c.name, hit.Window)
			}
		}
	}
}

func TestNGramIsSticky(t *testing.T) {
	var c NGram
	c.Write(bytes.Repeat([]byte("x"), 500))
	first := *c.Tripped()
	c.Write(bytes.Repeat([]byte("y"), 500))
	if got := c.Tripped(); got.Position != first.Position {
		t.Errorf("after the trip: position %d, want %d", got.Position, first.Position)
	}
}

// FuzzNGram compares the counter with its definition, for all parameters and cuts.
func FuzzNGram(f *testing.F) {
	f.Add([]byte("abcabcabcabcabc"), uint8(3), uint8(4), uint8(2))
	f.Add(bytes.Repeat([]byte("ab"), 300), uint8(100), uint8(4), uint8(7))
	f.Add([]byte("aab"), uint8(1), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, seed []byte, n, threshold, cut uint8) {
		// Texts that repeat themselves are rare; make one from pieces of the seed.
		rng := rand.New(rand.NewPCG(uint64(n), uint64(cut)))
		text := bytes.Clone(seed)
		for i := 0; len(text) < 2000 && len(seed) > 0 && i < 50; i++ {
			at := rng.IntN(len(seed))
			text = append(text, seed[at:at+rng.IntN(len(seed)-at+1)]...)
		}
		size, times := int(n%120)+1, int(threshold%6)+1
		c := NGram{N: size, Threshold: times}
		for rest := text; len(rest) > 0; {
			k := min(int(cut)+1, len(rest))
			c.Write(rest[:k])
			rest = rest[k:]
		}
		want, got := slow(text, size, times), c.Tripped()
		if (want == nil) != (got == nil) || want != nil && (want.Position != got.Position || !bytes.Equal(want.Window, got.Window)) {
			t.Errorf("n %d, threshold %d, text %q: got %v, want %v", size, times, text, got, want)
		}
	})
}

func TestCompression(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rambling := strings.Repeat("and so it goes on and on, ", 60)
	for _, c := range []struct {
		name  string
		texts []string // fed before each check
		want  int      // number of the check that trips, 0 for none
	}{
		{"rambling", []string{rambling, rambling, rambling}, 3},
		{"the window stays", []string{rambling, "", ""}, 3},
		{"prose between", []string{rambling, rambling, words(rng, 1024), rambling, rambling}, 0},
		{"shorter than the window", []string{rambling[:1000], "", "", ""}, 0},
		{"random text", []string{words(rng, 4000), words(rng, 4000), words(rng, 4000)}, 0},
	} {
		var d Compression
		tripped := 0
		for i, text := range c.texts {
			d.Write([]byte(text))
			d.Check()
			if d.Tripped() != nil && tripped == 0 {
				tripped = i + 1
			}
		}
		if tripped != c.want {
			t.Errorf("%s: tripped at check %d, want %d", c.name, tripped, c.want)
		}
	}
}

func TestCompressionHit(t *testing.T) {
	var d Compression
	for i := range 5 {
		d.Write(bytes.Repeat([]byte{byte('a' + i)}, 1100))
		d.Check()
	}
	hit := d.Tripped()
	if hit == nil || hit.Kind != "compression" || hit.Position != 3300 || len(hit.Ratios) != 3 {
		t.Fatalf("hit = %+v, want compression at 3300 with three ratios", hit)
	}
	// The newest ratio is the first: the last window had 1024 of one letter, as the others.
	for _, r := range hit.Ratios {
		if r <= 0 || r >= 0.18 {
			t.Errorf("ratios %v, want all between 0 and 0.18", hit.Ratios)
		}
	}
}

func TestWatcher(t *testing.T) {
	var trips []RepetitionHit
	w := NewWatcher()
	w.OnTrip = func(h RepetitionHit) { trips = append(trips, h) }
	w.Write(bytes.Repeat([]byte("z"), 2000))
	for range 5 {
		w.Tick()
	}
	if len(trips) != 1 || trips[0].Kind != "ngram" || w.Tripped().Position != 103 {
		t.Errorf("trips = %v, want one, ngram at 103", trips)
	}

	trips = nil
	w = &Watcher{Compression: &Compression{}, OnTrip: w.OnTrip}
	w.Write(bytes.Repeat([]byte("z"), 2000))
	for range 5 {
		w.Tick()
	}
	if len(trips) != 1 || trips[0].Kind != "compression" {
		t.Errorf("without n-grams: trips = %v, want one, compression", trips)
	}

	off := &Watcher{}
	off.Write(bytes.Repeat([]byte("z"), 2000))
	off.Tick()
	if off.Tripped() != nil {
		t.Error("a watcher without detectors tripped")
	}
}

func BenchmarkNGram(b *testing.B) {
	prose := []byte(words(rand.New(rand.NewPCG(5, 6)), 1<<16))
	var list bytes.Buffer
	for i := range 600 {
		fmt.Fprintf(&list, "  {\"id\": %d, \"type\": \"behaviour\", \"required\": true, \"description\": \"Check the field, case %x.\"},\n", i, i*7919)
	}
	for _, c := range []struct {
		name string
		text []byte
		size int
	}{{"prose", prose, len(prose)}, {"prose in tokens", prose, 5}, {"json list", list.Bytes(), list.Len()}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				var n NGram
				for rest := c.text; len(rest) > 0; {
					k := min(len(rest), c.size)
					n.Write(rest[:k])
					rest = rest[k:]
				}
				if n.Tripped() != nil {
					b.Fatal("tripped")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.text)), "ns/byte")
		})
	}
}
