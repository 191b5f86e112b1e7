package retrieve

import (
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/test/cputime"
)

// like returns vectors as embedders make them: without any order, around topics, or far off the origin with a few large numbers.
func like(how string, n, dimensions int) (all [][]float32) {
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(scale float64) []float32 {
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(scale * r.NormFloat64())
		}
		return v
	}
	topics := make([][]float32, 50)
	for i := range topics {
		topics[i] = normal(1)
	}
	common := normal(2)
	for i := range 4 {
		common[i*7%dimensions] *= 20
	}
	for i := range n {
		v := normal(1)
		for j := range v {
			switch how {
			case "topics":
				v[j] = 0.5*v[j] + topics[i%len(topics)][j]
			case "off the origin":
				v[j] = 0.3*v[j] + 0.3*topics[i%len(topics)][j] + common[j]
			}
		}
		all = append(all, v)
	}
	return all
}

// Of the ten nearest vectors at least 99 in 100 are among the candidates of their codes.
func TestRecall(t *testing.T) {
	const n, dimensions, asked, best, most = 10_000, 256, 10, 10, 150 // a search of an index ten times as large has 1,000
	for _, how := range []string{"noise", "topics", "off the origin"} {
		all := like(how, n+asked, dimensions)
		raws, units, codes := make([][]byte, n), make([][]float32, n), make([][]byte, n)
		for i := range n {
			raws[i], units[i] = encode(all[i])
		}
		centre := centreOf(units[:batchSize]) // as of the first request
		for i := range n {
			codes[i] = codeOf(units[i], centre)
		}
		found := 0
		for _, q := range all[n:] {
			_, q := encode(q)
			exact, e, c := candidates{most: best}, estimate(q, centre), candidates{most: most}
			for i := range n {
				k := key{byte(i), byte(i >> 8), byte(i >> 16)}
				exact.add(k, dot(q, raws[i]))
				c.add(k, e.of(codes[i]))
			}
			c.cut()
			exact.cut()
			for _, x := range exact.all {
				if slices.ContainsFunc(c.all, func(y estimated) bool { return x.key == y.key }) {
					found++
				}
			}
		}
		recall := float64(found) / (asked * best)
		t.Logf("%s: recall@%d is %.3f with %d of %d vectors", how, best, recall, most, n)
		if recall < 0.99 {
			t.Errorf("%s: %.3f", how, recall)
		}
	}
}

// An estimate has no bias, whatever the number of dimensions.
func TestEstimate(t *testing.T) {
	for _, dimensions := range []int{1, 3, 4, 5, 15, 16, 17, 100, 1536} {
		sum, n := 0.0, 200
		centre := make([]float32, dimensions)
		for i := range centre {
			centre[i] = 0.1 / float32(i+1)
		}
		for _, v := range like("noise", n, dimensions) {
			_, v := encode(v)
			exact := 0.0
			for i, x := range v {
				exact += float64(x) * float64(x-centre[i])
			}
			sum += float64(estimate(v, centre).of(codeOf(v, centre))) - exact
		}
		if math.Abs(sum/float64(n)) > 1e-2 {
			t.Errorf("%d: a vector is off itself by %.4f", dimensions, sum/float64(n))
		}
	}
	none := make([]float32, 8)
	if got := estimate(none, none).of(codeOf(none, none)); got != 0 {
		t.Errorf("a vector of zeros: %v", got)
	}
}

// SetRoom bounds the codes of a store in memory.
func (s *Store) SetRoom(bytes int) { s.codes.room = bytes }

// InMemory returns the number of codes in memory.
func (s *Store) InMemory() (n int) {
	for _, b := range s.codes.now.blocks {
		n += b.len()
	}
	return n
}

// Digests returns the texts whose codes are in memory.
func (s *Store) Digests() map[string]bool {
	all := map[string]bool{}
	for _, b := range s.codes.now.blocks {
		b.each(func(k key, _ []byte) { all[hex.EncodeToString(k[:])] = true })
	}
	return all
}

// CodesRead returns how many codes were read.
func (s *Store) CodesRead() int { return int(s.codes.read.Load()) }

// Busy makes the store busy with reading codes, until the returned function is called.
func (s *Store) Busy() (done func()) {
	s.codes.turn <- struct{}{}
	return func() { <-s.codes.turn }
}

// Fill takes all connections of the database.
func (s *Store) Fill(t testing.TB) (done func()) {
	var all []*sql.Conn
	for range mostConnections {
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	return func() {
		for _, conn := range all {
			conn.Close()
		}
	}
}

// BenchmarkEstimates compares a question with 200,000 codes of 1,536 numbers in memory.
func BenchmarkEstimates(b *testing.B) {
	const n, dimensions = 200_000, 1536
	r, width := rand.New(rand.NewPCG(1, 2)), widthOf(dimensions)
	data := make([]byte, n*width)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	one := make([]byte, 4)
	binary.LittleEndian.PutUint32(one, math.Float32bits(0.01))
	for i := range n {
		copy(data[i*width:], append(one, 0, 0, 0, 0)[:head])
	}
	q := like("noise", 1, dimensions)[0]
	start := cputime.Used()
	for b.Loop() {
		e, c := estimate(q, make([]float32, dimensions)), candidates{most: 1000}
		for i := range n {
			c.add(key{byte(i), byte(i >> 8), byte(i >> 16)}, e.of(data[i*width:(i+1)*width]))
		}
		if c.cut(); len(c.all) != 1000 {
			b.Fatal(len(c.all))
		}
	}
	b.ReportMetric((cputime.Used()-start).Seconds()*1000/float64(b.N), "CPU-ms/op")
}
