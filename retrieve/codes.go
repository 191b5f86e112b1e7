package retrieve

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
)

// A code is the distance of a vector from the centre of all, in 2 bits a number, after two numbers of 4 bytes: a factor
// and the product of centre and distance. A search estimates with the codes which vectors may be near, and compares these
// exactly. Reading 200,000 vectors of 1,536 numbers is reading 1.2 GB; their codes have 80 MB and fit into memory.
//
// The four values of a number are -3, -1, 1 and 3 halves of the step with which a normal distribution loses least (Max,
// "Quantizing for minimum distortion", IRE Transactions on Information Theory 6, 1960, doi:10.1109/TIT.1960.1057548). The
// factor makes the product of a code with its own distance right, as in RaBitQ (Gao and Long, SIGMOD 2024,
// doi:10.1145/3654970), so that estimates have no bias. Embedders make vectors with much in common, which the centre takes
// out: without it 3 of the 10 nearest were found where TestRecall now finds all.

const step = 0.9957 // in standard deviations

const head = 8 // bytes before the numbers of a code

func widthOf(dimensions int) int { return head + (dimensions+3)/4 }

// centreOf returns the mean of vectors.
func centreOf(all [][]float32) []float32 {
	mean := make([]float32, len(all[0]))
	for _, v := range all {
		for i, x := range v {
			mean[i] += x / float32(len(all))
		}
	}
	return mean
}

// codeOf returns the code of a vector with length 1.
func codeOf(v, centre []float32) []byte {
	code := make([]byte, widthOf(len(v)))
	distance, square, common := make([]float64, len(v)), 0.0, 0.0
	for i, x := range v {
		distance[i] = float64(x - centre[i])
		square += distance[i] * distance[i]
		common += distance[i] * float64(centre[i])
	}
	if square == 0 {
		return code
	}
	scale, product := math.Sqrt(float64(len(v))/square)/step, 0.0 // 1 over a step
	for i, x := range distance {
		level := int(min(max(math.Floor(x*scale)+2, 0), 3))
		product += x * float64(2*level-3)
		code[head+i/4] |= byte(level << (i % 4 * 2))
	}
	binary.LittleEndian.PutUint32(code, math.Float32bits(float32(square/product)))
	binary.LittleEndian.PutUint32(code[4:], math.Float32bits(float32(common)))
	return code
}

// An estimator has the products of a question with each byte of a code.
type estimator []float32

func estimate(q, centre []float32) estimator {
	e := make(estimator, 256*((len(q)+15)/16*4)) // of whole words
	for i, x := range q {
		part := e[i/4*256:][:256]
		for b := range part {
			part[b] += (x - centre[i]) * float32(2*(b>>(i%4*2)&3)-3)
		}
	}
	return e
}

// of estimates the cosine of question and vector, less a constant.
func (e estimator) of(code []byte) float32 {
	var a, b, c, d float32
	factor := math.Float32frombits(binary.LittleEndian.Uint32(code))
	common := math.Float32frombits(binary.LittleEndian.Uint32(code[4:]))
	code = code[head:]
	for ; len(code) >= 4 && len(e) >= 1024; code, e = code[4:], e[1024:] {
		part := (*[1024]float32)(e)
		a += part[code[0]]
		b += part[256+int(code[1])]
		c += part[512+int(code[2])]
		d += part[768+int(code[3])]
	}
	for i, x := range code {
		a += e[256*i+int(x)]
	}
	return factor*(a+b+c+d) + common
}

// A key is a digest in bytes.
type key [16]byte

func keyOf(digest []byte) (k key, err error) {
	if n, err := hex.Decode(k[:], digest); err != nil || n != len(k) {
		return k, fmt.Errorf("damaged: %q is no digest", digest)
	}
	return k, nil
}

// An estimated vector may be near.
type estimated struct {
	key
	near float32
}

// candidates collects the vectors that may be nearest.
type candidates struct {
	most int
	all  []estimated
	low  float32 // of those that are kept, once there are most
}

func (c *candidates) add(k key, near float32) {
	if len(c.all) >= c.most && near <= c.low {
		return
	}
	if c.all = append(c.all, estimated{k, near}); len(c.all) >= 2*c.most {
		c.cut()
	}
}

func (c *candidates) cut() {
	slices.SortFunc(c.all, func(a, b estimated) int {
		if a.near > b.near {
			return -1
		}
		return 1
	})
	if len(c.all) >= c.most {
		c.all = c.all[:c.most]
		c.low = c.all[c.most-1].near
	}
}

// codes keeps the codes of a store in memory.
type codes struct {
	room int           // for codes in bytes; larger ones are read at each search
	turn chan struct{} // is held by who reads the field now, or the database for it
	now  *coded        // nil before the first search
	read atomic.Int64  // codes that were read, for tests
}

// coded are the codes of a state. Searches share it.
type coded struct {
	version, centre string
	width           int // bytes of a code; 0 for codes that do not fit into the room
	keys            []key
	data            []byte
	met             map[key]int // by the pass that met the key last; it belongs to who has the turn
	pass            int
}

// mostCodes bounds the codes in memory: 1.3 million of vectors with 1,536 numbers.
const mostCodes = 512 << 20

// estimates returns the vectors that may be nearest to a question, among some if these are given.
func (s *Store) estimates(ctx context.Context, st *State, q []float32, among map[key]bool, most int) ([]estimated, error) {
	centre, err := st.centre()
	if err != nil {
		return nil, err
	}
	_, unit := encode(q)
	e, found := estimate(unit, centre), candidates{most: most}
	visit := func(k key, code []byte) {
		if among == nil || among[k] {
			found.add(k, e.of(code))
		}
	}
	c, err := s.coded(ctx, st)
	if err == nil && c.width == 0 {
		err = s.eachCode(ctx, st, nil, visit)
	}
	if err != nil {
		return nil, err
	}
	for i, k := range c.keys {
		visit(k, c.data[i*c.width:(i+1)*c.width])
	}
	found.cut()
	return found.all, nil
}

// coded returns the codes of a state, after it has read those that are not in memory.
func (s *Store) coded(ctx context.Context, st *State) (*coded, error) {
	select {
	case s.codes.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.codes.turn }()
	before := s.codes.now
	if before != nil && before.version == st.version && before.centre == st.about {
		return before, nil
	}
	c := &coded{version: st.version, centre: st.about, width: widthOf(st.Dimensions)}
	if before != nil && before.width == c.width && before.centre == c.centre {
		before.pass++
		*c = *before // its slices are appended to, beyond what searches see
		c.version = st.version
	}
	if err := s.update(ctx, st, c); err != nil {
		return nil, err // the old codes still fit their version
	}
	s.codes.now = c
	return c, nil
}

// update brings codes to the state of the database: it reads new codes, and removes codes whose vectors have gone. An error
// changes nothing that searches see.
func (s *Store) update(ctx context.Context, st *State, c *coded) error {
	var n int
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM vectors`).Scan(&n); err != nil {
		return err
	}
	switch {
	case n*c.width > s.codes.room:
		*c = coded{version: c.version, centre: c.centre}
		return nil
	case len(c.keys) == 0 || len(c.keys) < n/2:
		c.keys, c.data, c.met = make([]key, 0, n), make([]byte, 0, n*c.width), make(map[key]int, n)
		return s.eachCode(ctx, st, nil, c.add)
	}
	kept, fresh, err := s.compared(ctx, c)
	read := &coded{met: map[key]int{}, pass: c.pass}
	for part := range slices.Chunk(fresh, 1000) {
		if err == nil {
			err = s.eachCode(ctx, st, part, read.add)
		}
	}
	if err != nil {
		return err
	}
	if kept < len(c.keys) {
		c.sweep()
	}
	c.keys, c.data = append(c.keys, read.keys...), append(c.data, read.data...)
	maps.Copy(c.met, read.met)
	return nil
}

// compared marks the keys that the database still has, and returns their number and the digests that are new.
func (s *Store) compared(ctx context.Context, c *coded) (kept int, fresh []any, err error) {
	var digest sql.RawBytes
	err = s.each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&digest); err != nil {
			return err
		}
		k, err := keyOf(digest)
		if _, known := c.met[k]; known {
			c.met[k] = c.pass
			kept++
		} else {
			fresh = append(fresh, string(digest))
		}
		return err
	}, `SELECT digest FROM vectors`)
	return kept, fresh, err
}

// add adds a code, unless it was stored while the vectors without a code were read, and is here already.
func (c *coded) add(k key, code []byte) {
	if _, twice := c.met[k]; !twice {
		c.keys, c.data, c.met[k] = append(c.keys, k), append(c.data, code...), c.pass
	}
}

// sweep removes the codes that the last pass has not met. Searches keep the slices that they have.
func (c *coded) sweep() {
	keys, data := make([]key, 0, len(c.keys)), make([]byte, 0, len(c.data))
	for i, k := range c.keys {
		if c.met[k] == c.pass {
			keys, data = append(keys, k), append(data, c.data[i*c.width:(i+1)*c.width]...)
		} else {
			delete(c.met, k)
		}
	}
	c.keys, c.data = keys, data
}

// eachCode visits the code of each vector, among some digests if these are given. It computes the codes that are not stored.
func (s *Store) eachCode(ctx context.Context, st *State, among []any, visit func(key, []byte)) error {
	centre, err := st.centre()
	if err != nil {
		return err
	}
	var digest, raw sql.RawBytes
	width := widthOf(st.Dimensions)
	scan := func(size int, code func([]byte) []byte) func(rows *sql.Rows) error {
		return func(rows *sql.Rows) error {
			if err := rows.Scan(&digest, &raw); err != nil {
				return err
			}
			k, err := keyOf(digest)
			if err == nil && len(raw) != size {
				err = fmt.Errorf("damaged: the vector of %s has another length", digest)
			}
			if err == nil {
				s.codes.read.Add(1)
				visit(k, code(raw))
			}
			return err
		}
	}
	only, and := "", " WHERE "
	if among != nil {
		only, and = ` WHERE v.digest IN (`+marks(len(among))+`)`, " AND "
	}
	uncoded := `SELECT v.digest, v.vector FROM vectors v` + only
	if !s.dialect.Uncoded {
		uncoded += and + `NOT EXISTS (SELECT 1 FROM codes c WHERE c.digest = v.digest)`
		err = s.each(ctx, scan(width, func(code []byte) []byte { return code }), `SELECT v.digest, v.code FROM codes v`+only, among...)
	}
	if err == nil {
		err = s.each(ctx, scan(4*st.Dimensions, func(raw []byte) []byte { return codeOf(decode(raw), centre) }), uncoded, among...)
	}
	return err
}

// recode makes the codes of an index that an older program has built, which kept no centre.
func (s *Store) recode(ctx context.Context, tx *sql.Tx) (done bool, err error) {
	st, err := s.made(ctx, tx)
	if err != nil || st.Embedder == "" || st.about != "" {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM codes`); err != nil {
		return false, err
	}
	var centre []float32
	for last := ""; ; {
		digests, vectors, err := s.page(ctx, tx, last)
		if err != nil || len(digests) == 0 {
			return centre != nil, err
		}
		if last = digests[len(digests)-1]; centre == nil {
			centre = centreOf(vectors)
			if _, err := tx.ExecContext(ctx, s.bind(note), "centre", base64.StdEncoding.EncodeToString(appendFloats(nil, centre))); err != nil {
				return false, err
			}
		}
		for i, v := range vectors {
			if _, err := tx.ExecContext(ctx, s.bind(`INSERT INTO codes (digest, code) VALUES (?, ?)`), digests[i], codeOf(v, centre)); err != nil {
				return false, err
			}
		}
	}
}

// page returns the next vectors after a digest.
func (s *Store) page(ctx context.Context, tx *sql.Tx, after string) (digests []string, vectors [][]float32, err error) {
	rows, err := tx.QueryContext(ctx, s.bind(`SELECT digest, vector FROM vectors WHERE digest > ? ORDER BY digest LIMIT 256`), after)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var digest string
		var raw []byte
		if err := rows.Scan(&digest, &raw); err != nil {
			return nil, nil, err
		}
		digests, vectors = append(digests, digest), append(vectors, decode(raw))
	}
	return digests, vectors, rows.Err()
}

// centre returns the centre of the codes.
func (st *State) centre() ([]float32, error) {
	if st.about == "" { // of an older program
		return make([]float32, st.Dimensions), nil
	}
	raw, err := base64.StdEncoding.DecodeString(st.about)
	if err != nil || len(raw) != 4*st.Dimensions {
		return nil, errors.New("damaged: the centre of the vectors has another length")
	}
	return decode(raw), nil
}

// decode returns the vector of bytes.
func decode(raw []byte) []float32 {
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}
