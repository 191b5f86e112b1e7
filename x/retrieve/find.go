package retrieve

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// words returns at most 64 distinct words of a question, in the form in which indexable writes them. English function words are
// omitted, unless the question consists only of such words.
func words(question string) (all []string) {
	const most = 64
	var common []string
	for word := range strings.FieldsFuncSeq(pairs(question, false), func(r rune) bool { return !isWord(r) }) {
		list := &all
		if word = strings.ToLower(word); slices.Contains(function, word) {
			list = &common
		}
		if !slices.Contains(*list, word) && len(*list) < most {
			*list = append(*list, word)
		}
	}
	if len(all) == 0 {
		return common
	}
	return all
}

// function lists the function words of English.
var function = strings.Fields(`a about an and any are as at be been but by can could did do does for from had has have how i if in into is it its me my no not
	of on or our should so some than that the their them then there these they this those to was we were what when where which who why will with would you your`)

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)
}

// A place is the position of a piece in a ranking. Pieces with equal scores have the same rank.
type place struct {
	id   int64
	rank int // from 1
}

// filter returns the SQL conditions of a query on documents d, each preceded by AND.
func (s *Store) filter(q *Query) (text string, args []any) {
	if folder := folderOf(q.Under); folder != "" {
		text, args = " AND (d.name = ? OR substr(d.name, 1, ?) = ?)", append(args, folder, len([]rune(folder))+1, folder+"/")
	}
	for _, key := range slices.Sorted(maps.Keys(q.Where)) {
		text, args = text+" AND "+s.dialect.Meta, append(args, key, q.Where[key])
	}
	return text, args
}

// byWords returns pieces ranked by the words of a question. The result strong is the number of pieces whose score is at least a
// fifth of the best score.
func (s *Store) byWords(ctx context.Context, q *Query, n int) (ranking []place, strong int, err error) {
	all := words(q.Text)
	if len(all) == 0 {
		return nil, 0, nil
	}
	where, args := s.filter(q)
	if where != "" {
		where = strings.Replace(s.dialect.Among, "%s", where, 1)
	}
	query := strings.ReplaceAll(s.dialect.Words, "%s", where)
	args = slices.Repeat(args, strings.Count(s.dialect.Words, "%s"))
	rank := func(text string) (last float64, err error) {
		best, rank := 0.0, 0
		ranking, strong = nil, 0
		err = s.each(ctx, func(rows *sql.Rows) error {
			var id int64
			var score float64
			err := rows.Scan(&id, &score)
			if rank == 0 || score != last {
				rank = len(ranking) + 1
			}
			ranking, best, last = append(ranking, place{id, rank}), max(best, score), score
			if score >= best/5 && score > nothing {
				strong++
			}
			return err
		}, query, append(append([]any{text}, args...), n)...)
		return last, s.explain(err)
	}
	texts, least, err := s.dialect.Choose(ctx, s.db, all, n)
	if err != nil {
		return nil, 0, s.explain(err)
	}
	for _, text := range texts {
		if last, err := rank(text); err != nil || len(ranking) == n && last >= least {
			return ranking, strong, err
		}
	}
	return ranking, strong, nil
}

// nothing is an upper limit for the score of words that occur in most pieces: SQLite's BM25 gives them a millionth.
const nothing = 1e-4

// A near is the digest of a vector with its cosine to the question.
type near struct {
	digest string
	cosine float32
}

// byVector returns the n pieces nearest to v, a vector computed by the embedder, ranked by distance. All vectors that it compares
// belong to the same state of the index, even if another process rebuilds the index meanwhile.
func (s *Store) byVector(ctx context.Context, q *Query, embedder string, v []float32, n int) ([]place, error) {
	st, err := s.made(ctx, s.db)
	for range 3 {
		switch {
		case err != nil || st.Embedder == "":
			return nil, s.explain(err)
		case st.Embedder != embedder:
			return nil, &EmbedderError{st.Embedder, embedder}
		case st.Dimensions != len(v):
			return nil, &EmbedderError{fmt.Sprintf("%s with %d dimensions", embedder, st.Dimensions), fmt.Sprintf("%s with %d", embedder, len(v))}
		}
		ranking, failed := s.compare(ctx, q, &st, v, n)
		before := st
		if st, err = s.made(ctx, s.db); err == nil && st.Embedder == before.Embedder && st.Dimensions == before.Dimensions && st.about == before.about {
			return ranking, s.explain(failed)
		}
	}
	return nil, s.explain(cmp.Or(err, error(rebuildingError{})))
}

// rebuildingError is returned by a search while another process rebuilds the index.
type rebuildingError struct{}

func (rebuildingError) Error() string { return "it is being rebuilt: search again" }

// Retryable returns true.
func (rebuildingError) Retryable() bool { return true }

// compare returns the n pieces nearest to v, ranked by exact cosines. The candidates are selected by their codes.
func (s *Store) compare(ctx context.Context, q *Query, st *State, v []float32, n int) ([]place, error) {
	where, args := s.filter(q)
	among, err := s.among(ctx, where, args)
	if err != nil || among != nil && len(among) == 0 {
		return nil, err
	}
	given := []any{}
	if most := max(20*n, 1000); among != nil && len(among) <= most {
		for k := range among {
			given = append(given, hex.EncodeToString(k[:]))
		}
	} else {
		found, err := s.estimates(ctx, st, v, among, most)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			given = append(given, hex.EncodeToString(f.key[:]))
		}
	}
	best, err := s.nearest(ctx, v, given, n)
	if err != nil || len(best) == 0 {
		return nil, err
	}
	return s.withDigests(ctx, best, where, args, n)
}

// among returns the digests of the texts in the documents that match the filter, or nil if there is no filter.
func (s *Store) among(ctx context.Context, where string, args []any) (map[key]bool, error) {
	if where == "" {
		return nil, nil
	}
	all := map[key]bool{}
	var digest sql.RawBytes
	err := s.each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&digest); err != nil {
			return err
		}
		k, err := keyOf(digest)
		all[k] = true
		return err
	}, `SELECT p.digest FROM pieces p JOIN documents d ON d.id = p.document WHERE 1 = 1`+where, args...)
	return all, err
}

// nearest returns the n vectors of digests that are nearest to v, nearest first.
func (s *Store) nearest(ctx context.Context, v []float32, digests []any, n int) ([]near, error) {
	best := make([]near, 0, n+1)
	if len(digests) == 0 {
		return best, nil
	}
	var digest, raw sql.RawBytes
	err := s.each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&digest, &raw); err != nil {
			return err
		}
		if len(raw) != 4*len(v) {
			return fmt.Errorf("damaged: the vector of %s has another length", digest)
		}
		likeness := dot(v, raw)
		if len(best) == n && likeness <= best[n-1].cosine {
			return nil
		}
		at, _ := slices.BinarySearchFunc(best, likeness, func(b near, x float32) int {
			if b.cosine > x {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, near{string(digest), likeness})
		best = best[:min(len(best), n)]
		return nil
	}, `SELECT digest, vector FROM vectors WHERE digest IN (`+marks(len(digests))+`)`, digests...)
	return best, err
}

// withDigests returns the pieces that have the given texts, in the same ranking. A text may occur in several files.
func (s *Store) withDigests(ctx context.Context, best []near, where string, args []any, n int) (ranking []place, err error) {
	found, given := map[string][]int64{}, []any{}
	for _, b := range best {
		given = append(given, b.digest)
	}
	err = s.each(ctx, func(rows *sql.Rows) error {
		var id int64
		var digest string
		err := rows.Scan(&id, &digest)
		found[digest] = append(found[digest], id)
		return err
	}, `SELECT p.id, p.digest FROM pieces p JOIN documents d ON d.id = p.document WHERE p.digest IN (`+marks(len(given))+`)`+where+` ORDER BY p.id`, append(given, args...)...)
	rank := 0
	for i, b := range best {
		if i == 0 || b.cosine != best[i-1].cosine {
			rank = len(ranking) + 1
		}
		for _, id := range found[b.digest] {
			ranking = append(ranking, place{id, rank})
		}
	}
	return ranking[:min(len(ranking), n)], err
}

// passages returns the passages with these ids.
func (s *Store) passages(ctx context.Context, ids []int64) (map[int64]Passage, error) {
	found := map[int64]Passage{}
	if len(ids) == 0 {
		return found, nil
	}
	err := s.each(ctx, func(rows *sql.Rows) error {
		var id int64
		var meta string
		var p Passage
		err := rows.Scan(&id, &p.File, &p.From, &p.To, &p.Page, &p.Heading, &p.Text, &meta)
		if err == nil {
			err = json.Unmarshal([]byte(meta), &p.Meta)
		}
		found[id] = p
		return err
	}, `SELECT p.id, d.name, p.first, p.last, p.page, p.heading, p.text, d.meta FROM pieces p JOIN documents d ON d.id = p.document WHERE p.id IN (`+marks(len(ids))+`)`, anys(ids)...)
	return found, s.explain(err)
}

// encode scales a vector to length 1, so that dot products are cosines. It returns the vector as bytes and as numbers.
func encode(v []float32) (data []byte, unit []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	scale := 1.0
	if sum > 0 {
		scale = 1 / math.Sqrt(sum)
	}
	unit = make([]float32, len(v))
	for i, x := range v {
		unit[i] = float32(float64(x) * scale)
	}
	return appendFloats(make([]byte, 0, 4*len(v)), unit), unit
}

func appendFloats(data []byte, v []float32) []byte {
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

// dot returns the dot product of a vector and another one of the same length, given as bytes. It uses four sums, on which the
// processor can work at the same time.
func dot(v []float32, data []byte) float32 {
	var a, b, c, d float32
	for ; len(v) >= 4 && len(data) >= 16; v, data = v[4:], data[16:] {
		a += v[0] * math.Float32frombits(binary.LittleEndian.Uint32(data))
		b += v[1] * math.Float32frombits(binary.LittleEndian.Uint32(data[4:]))
		c += v[2] * math.Float32frombits(binary.LittleEndian.Uint32(data[8:]))
		d += v[3] * math.Float32frombits(binary.LittleEndian.Uint32(data[12:]))
	}
	for i := range min(len(v), len(data)/4) {
		a += v[i] * math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return a + b + c + d
}
