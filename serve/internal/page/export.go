package page

import (
	"io"
	"net/http"
	"strconv"

	"github.com/stonelayer/stone/internal/export"
)

// A begun notes whether anything was written to its Writer.
type begun struct {
	io.Writer
	yes bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.yes = true
	return b.Writer.Write(p)
}

// trace answers with a run as a file for Perfetto. If the run cannot be read to its end, it breaks the connection off, so
// that nobody takes a part for the whole.
func trace(w http.ResponseWriter, r *http.Request, v View) error {
	info, err := find(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(info.ID+".trace.json"))
	out := &begun{Writer: w}
	if err = export.Chrome(out, info, v.Journal.EachStep(r.Context(), info.ID)); err != nil && out.yes {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		h.Del("Content-Disposition") // the page of the error
	}
	return err
}
