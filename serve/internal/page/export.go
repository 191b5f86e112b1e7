package page

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// started is a writer that records whether anything was written.
type started struct {
	io.Writer
	yes bool
}

func (s *started) Write(p []byte) (int, error) {
	s.yes = true
	return s.Writer.Write(p)
}

// result replies with the result of a run as a file: a text as it is, any other value as JSON.
func result(w http.ResponseWriter, r *http.Request, v View) error {
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	if info.State != journal.Done || info.Node == (dag.ID{}) {
		return missing("Run %q has no result: it is %s.", info.ID, info.State)
	}
	n, err := nodeOf(r.Context(), v, info, info.Node.String())
	if err != nil {
		return err
	}
	own := []byte(dag.OwnContent(string(n.Content), n.Meta))
	var object map[string]json.RawMessage
	if json.Unmarshal(own, &object) == nil && len(object) == 1 && json.Unmarshal(object["text"], new(string)) == nil {
		own = object["text"] // text of an agent's result
	}
	var said string
	kind, name := "application/json", info.ID+".json"
	if json.Unmarshal(own, &said) == nil {
		kind, name, own = "text/plain; charset=utf-8", info.ID+".txt", []byte(said)
	} else {
		own = []byte(text.JSON(string(own)) + "\n")
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(name))
	_, err = w.Write(own)
	return err
}

// trace replies with a run as a file for Perfetto. If the run cannot be read completely, the connection is aborted, so that
// nobody mistakes a part for the whole.
func trace(w http.ResponseWriter, r *http.Request, v View) error {
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(info.ID+".trace.json"))
	out := &started{Writer: w}
	if err = export.Chrome(out, info, v.Journal.EachStep(r.Context(), info.ID)); err != nil && out.yes {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		h.Del("Content-Disposition") // for the error page
	}
	return err
}
