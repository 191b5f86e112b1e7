package retrieve

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// A code is the difference between a vector and the centre of all vectors, with 2 bits for each number. It starts with two
// numbers of 4 bytes: a factor, and the dot product of the centre and the difference. A search uses the codes to estimate which
// vectors may be near, and then compares these vectors exactly. Reading 200,000 vectors of 1,536 numbers means reading 1.2 GB;
// their codes take 80 MB and fit into memory.
//
// The four values of a number are -3, -1, 1 and 3 halves of the step that quantizes a normal distribution with the smallest error
// (Max, "Quantizing for minimum distortion", IRE Transactions on Information Theory 6, 1960, doi:10.1109/TIT.1960.1057548). The
// factor makes the product of a code with its own difference exact, as in RaBitQ (Gao and Long, SIGMOD 2024,
// doi:10.1145/3654970), so that estimates have no bias. Vectors from an embedder have much in common, and subtracting the centre
// removes it: otherwise only 3 of the 10 nearest vectors were found where TestRecall now finds all.

const step = 0.9957 // in standard deviations

const head = 8 // number of bytes before a code's numbers

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

// codeOf returns the code of a vector of length 1.
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
	scale, product := math.Sqrt(float64(len(v))/square)/step, 0.0 // inverse of the step
	for i, x := range distance {
		level := int(min(max(math.Floor(x*scale)+2, 0), 3))
		product += x * float64(2*level-3)
		code[head+i/4] |= byte(level << (i % 4 * 2))
	}
	binary.LittleEndian.PutUint32(code, math.Float32bits(float32(square/product)))
	binary.LittleEndian.PutUint32(code[4:], math.Float32bits(float32(common)))
	return code
}

// An estimator contains, for a question, the product with every possible byte of a code at each position.
type estimator []float32

func estimate(q, centre []float32) estimator {
	e := make(estimator, 256*((len(q)+15)/16*4)) // rounded up to whole words
	for i, x := range q {
		part := e[i/4*256:][:256]
		for b := range part {
			part[b] += (x - centre[i]) * float32(2*(b>>(i%4*2)&3)-3)
		}
	}
	return e
}

// of returns an estimate of the cosine between the question and a vector, up to a constant.
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

// A key is a digest as bytes.
type key [16]byte

func keyOf(digest []byte) (k key, err error) {
	if n, err := hex.Decode(k[:], digest); err != nil || n != len(k) {
		return k, fmt.Errorf("damaged: %q is not a digest", digest)
	}
	return k, nil
}

// An estimated vector is one that may be near, with its estimated cosine.
type estimated struct {
	key
	near float32
}

// candidates collects the vectors that may be nearest.
type candidates struct {
	most int
	all  []estimated
	low  float32 // lowest estimate kept, once the maximum number is kept; -Inf before
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

// A block contains the codes of several texts, because a code is small compared with the overhead of its own row, and an index
// may have 200,000 codes. Blocks are never changed: a new block has a higher id, and blocks with codes of removed vectors are
// replaced by new blocks.
type block struct {
	id          int64
	keys, codes []byte // keys and codes of all texts, concatenated
}

func (b *block) len() int { return len(b.keys) / len(key{}) }

// add appends a code.
func (b *block) add(k key, code []byte) {
	b.keys, b.codes = append(b.keys, k[:]...), append(b.codes, code...)
}

// each calls visit for each code.
func (b *block) each(visit func(key, []byte)) {
	width := len(b.codes) / max(b.len(), 1)
	for i := range b.len() {
		visit(key(b.keys[i*len(key{}):]), b.codes[i*width:][:width])
	}
}

// sound checks the lengths in a block. The codes may belong to vectors with a different number of dimensions.
func (b *block) sound(width int) error {
	if len(b.keys)%len(key{}) != 0 || len(b.codes) != b.len()*width {
		return fmt.Errorf("damaged: the block %d of codes has another length: index the documents again with --rebuild", b.id)
	}
	return nil
}

const (
	blockSize  = 64 // codes per block; equals the number of texts in a request for vectors
	smallBlock = blockSize / 2
	mostSmall  = 32 // maximum number of small blocks in an index
)

// codes keeps the codes of a store in memory.
type codes struct {
	room int           // maximum size of the codes in memory, in bytes; larger codes are read for each search
	turn chan struct{} // held by the goroutine that reads the next field, or that reads the database to set it
	now  *coded        // nil before the first search
	read atomic.Int64  // number of codes read, for tests
}

// coded holds the codes for one state of the index. Searches share it.
type coded struct {
	version, centre string
	blocks          []block // in the order of their ids
	large           bool    // the codes do not fit and were not loaded
}

// mostCodes is the maximum size of the codes in memory: 1.3 million codes of vectors with 1,536 numbers.
const mostCodes = 512 << 20

// estimates returns the vectors that may be nearest to a question. If among is not nil, only the texts in it are considered.
func (s *Store) estimates(ctx context.Context, st *State, q []float32, among map[key]bool, most int) ([]estimated, error) {
	centre, err := st.centre()
	if err != nil {
		return nil, err
	}
	_, unit := encode(q)
	e, found := estimate(unit, centre), candidates{most: most, low: float32(math.Inf(-1))}
	visit := func(k key, code []byte) {
		if among == nil || among[k] {
			found.add(k, e.of(code))
		}
	}
	c, err := s.coded(ctx, st)
	if err == nil && c.large {
		err = s.eachBlock(ctx, st, 0, func(b block) { b.each(visit) })
	}
	if err != nil {
		return nil, err
	}
	for i := range c.blocks {
		c.blocks[i].each(visit)
	}
	found.cut()
	return found.all, nil
}

// coded returns the codes of a state. Codes that are not in memory are read from the database.
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
	c := &coded{version: st.version, centre: st.about}
	var n int
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM vectors`).Scan(&n); err != nil {
		return nil, err
	}
	if c.large = n*widthOf(st.Dimensions) > s.codes.room; !c.large {
		var known []block
		if before != nil && before.centre == c.centre {
			known = before.blocks
		}
		newest := int64(0)
		if len(known) > 0 {
			newest = known[len(known)-1].id
		}
		err := s.eachBlock(ctx, st, newest, func(b block) {
			for len(known) > 0 && known[0].id < b.id { // the block no longer exists
				known = known[1:]
			}
			if b.keys == nil && len(known) > 0 {
				b = known[0]
			}
			c.blocks = append(c.blocks, b)
		})
		if err != nil {
			return nil, err // the old codes are still valid for their version
		}
	}
	s.codes.now = c
	return c, nil
}

// eachBlock calls visit for each block in the order of ids. Blocks with ids up to newest have no content, because the caller
// already has it.
func (s *Store) eachBlock(ctx context.Context, st *State, newest int64, visit func(block)) error {
	width := widthOf(st.Dimensions)
	return s.each(ctx, func(rows *sql.Rows) error {
		var b block
		if err := rows.Scan(&b.id, &b.keys, &b.codes); err != nil {
			return err
		}
		if err := b.sound(width); err != nil {
			return err
		}
		s.codes.read.Add(int64(b.len()))
		visit(b)
		return nil
	}, `SELECT id, CASE WHEN id > ? THEN keys END, CASE WHEN id > ? THEN codes END FROM blocks ORDER BY id`, newest, newest)
}

// store writes a block unless it is empty.
func (b *block) store(ctx context.Context, s *Store, tx *sql.Tx) error {
	if b.len() == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, s.bind(`INSERT INTO blocks (keys, codes) VALUES (?, ?)`), b.keys, b.codes)
	return err
}

// compact rewrites blocks that contain codes of removed vectors, and merges small blocks.
func (s *Store) compact(ctx context.Context, tx *sql.Tx, gone map[key]bool) error {
	ids, small, err := s.untidy(ctx, tx, gone)
	if err != nil || len(ids) == small && small <= mostSmall {
		return err
	}
	st, err := s.made(ctx, tx)
	if err != nil {
		return err
	}
	var next block
	for _, id := range ids {
		b := block{id: id}
		err := tx.QueryRowContext(ctx, s.bind(`DELETE FROM blocks WHERE id = ? RETURNING keys, codes`), id).Scan(&b.keys, &b.codes)
		if err == nil {
			err = b.sound(widthOf(st.Dimensions)) // otherwise the damage would spread
		}
		if err != nil {
			return err
		}
		b.each(func(k key, code []byte) {
			if err == nil && !gone[k] {
				if next.add(k, code); next.len() == blockSize {
					err, next = next.store(ctx, s, tx), block{}
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return next.store(ctx, s, tx)
}

// untidy returns the blocks to be compacted, and the number of blocks that are included only because they are small.
func (s *Store) untidy(ctx context.Context, tx *sql.Tx, gone map[key]bool) (ids []int64, small int, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, keys FROM blocks ORDER BY id`)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var b block
		if err := rows.Scan(&b.id, &b.keys); err != nil {
			return nil, 0, err
		}
		touched := false
		b.each(func(k key, _ []byte) { touched = touched || gone[k] })
		if !touched && b.len() < smallBlock {
			small++
		}
		if touched || b.len() < smallBlock {
			ids = append(ids, b.id)
		}
	}
	return ids, small, rows.Err()
}

// centre returns the centre of the codes.
func (st *State) centre() ([]float32, error) {
	raw, err := base64.StdEncoding.DecodeString(st.about)
	if err != nil || len(raw) != 4*st.Dimensions {
		return nil, errors.New("damaged: the centre of the vectors has another length")
	}
	return decode(raw), nil
}

// decode converts bytes to a vector.
func decode(raw []byte) []float32 {
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}
