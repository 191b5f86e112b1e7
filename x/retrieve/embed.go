package retrieve

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// An embedding computes and stores vectors. It holds what is known so far about the embedder's limits and about vectors that
// could not be stored.
type embedding struct {
	*Index
	mu      sync.Mutex
	most    int      // maximum number of texts in a request to the embedder; 0 if no maximum smaller than a batch is known
	able    bool     // the embedder has answered
	unsaved []change // vectors that were paid for but could not be stored; until they are stored, no more are paid for
}

// A refusal is a text that the embedder has refused.
type refusal struct {
	Digest string `json:"digest"`
	Why    string `json:"why"`
}

// embed computes the missing vectors of a batch.
func (e *embedding) embed(ctx context.Context, b batch) (done embedded, err error) {
	digests, texts, err := e.Store.bare(ctx, b)
	if err != nil {
		return done, err
	}
	return paid(ctx, "embed", b, llm.QuoteEmbed(ctx, e.Embedder, &llm.EmbedRequest{Texts: texts}), func(ctx context.Context) (done embedded, err error) {
		if err := e.save(ctx); err != nil || len(digests) == 0 { // a process that died has computed them, and its record contains the usage
			return done, err
		}
		err = e.vectors(ctx, digests, texts, &done)
		if err != nil && done.Usage != (budget.Usage{}) {
			err = budget.Costly(err, done.Usage)
		}
		return done, err
	}, func(e embedded) budget.Usage { return e.Usage })
}

// save stores vectors that could not be stored before. While it returns an error, for example because the disk is full, no more
// vectors are requested.
func (e *embedding) save(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.unsaved) > 0 {
		if err := e.Store.change(ctx, e.unsaved[0]); err != nil {
			return fmt.Errorf("vectors that were paid for cannot be stored, so no more are made: %w", err)
		}
		e.unsaved = e.unsaved[1:]
	}
	return nil
}

// vectors computes and stores vectors, with as many requests as the embedder requires. A refused request is halved until the
// embedder accepts it or only one text is left.
func (e *embedding) vectors(ctx context.Context, digests, texts []string, done *embedded) error {
	e.mu.Lock()
	most := e.most
	e.mu.Unlock()
	if most > 0 && most < len(texts) {
		for len(texts) > 0 {
			n := min(most, len(texts))
			if err := e.vectors(ctx, digests[:n], texts[:n], done); err != nil {
				return err
			}
			digests, texts = digests[n:], texts[n:]
		}
		return nil
	}
	got, err := e.Embedder.Embed(ctx, &llm.EmbedRequest{Texts: texts})
	if refused(err) {
		return e.halve(ctx, digests, texts, err, done)
	}
	if err != nil {
		return err
	}
	done.Usage = done.Usage.Add(got.Usage)
	if err := got.Check(len(texts)); err != nil {
		return err
	}
	made := map[string][]float32{}
	for i, d := range digests {
		made[d] = got.Vectors[i]
	}
	c := change{vectors: made, embedder: e.name()}
	err = e.Store.change(ctx, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.able = true; err != nil && !errors.As(err, new(*EmbedderError)) && ctx.Err() == nil {
		e.unsaved = append(e.unsaved, c)
	}
	if err == nil {
		done.Texts += len(made)
	}
	return err
}

// refused reports whether err means that a server has refused a request because of its content.
func refused(err error) bool {
	h, is := errors.AsType[*llm.HTTPError](err)
	return is && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, h.Status)
}

// halve computes the vectors of refused texts in two requests. If both succeed, the first request had too many texts, and later
// requests will have fewer.
func (e *embedding) halve(ctx context.Context, digests, texts []string, why error, done *embedded) error {
	if len(texts) == 1 {
		e.mu.Lock()
		able := e.able
		e.mu.Unlock()
		if !able { // with a wrong model or address, every text is refused
			got, err := e.Embedder.Embed(ctx, &llm.EmbedRequest{Texts: []string{"test"}})
			if err != nil {
				return why
			}
			done.Usage = done.Usage.Add(got.Usage)
			e.mu.Lock()
			e.able = true
			e.mu.Unlock()
		}
		done.Refused = append(done.Refused, refusal{digests[0], why.Error()})
		return nil
	}
	half, before := len(texts)/2, len(done.Refused)
	err := e.vectors(ctx, digests[:half], texts[:half], done)
	if err == nil {
		err = e.vectors(ctx, digests[half:], texts[half:], done)
	}
	if err == nil && len(done.Refused) == before {
		e.mu.Lock()
		if n := len(texts) - half; e.most == 0 || n < e.most {
			e.most = n
		}
		e.mu.Unlock()
	}
	return err
}

// places appends an entry to all for each place in which a refused text occurs.
func (s *Store) places(ctx context.Context, all []Skipped, r refusal) ([]Skipped, error) {
	err := s.each(ctx, func(rows *sql.Rows) error {
		var file string
		var from, to, page int
		err := rows.Scan(&file, &from, &to, &page)
		at := fmt.Sprintf("lines %d to %d", from, to)
		if page > 0 {
			at = fmt.Sprintf("page %d", page)
		}
		all = append(all, Skipped{file, at + " have no vector: the embedder refuses the text: " + r.Why})
		return err
	}, `SELECT d.name, p.first, p.last, p.page FROM pieces p JOIN documents d ON d.id = p.document WHERE p.digest = ? ORDER BY 1, 2`, r.Digest)
	return all, s.explain(err)
}
