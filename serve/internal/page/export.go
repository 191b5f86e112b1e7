package page

import (
	"io"
	"iter"
	"net/http"
	"strconv"

	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/journal"
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

// exported answers with a run in the format of another tool. If the run cannot be read to its end, it breaks the connection
// off, so that nobody takes a part for the whole.
func exported(kind, extension string, write func(io.Writer, journal.RunInfo, iter.Seq2[journal.Step, error]) error) func(http.ResponseWriter, *http.Request, View) error {
	return func(w http.ResponseWriter, r *http.Request, v View) error {
		info, err := find(r.Context(), v, r.PathValue("id"))
		if err != nil {
			return err
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(info.ID+extension))
		out := &begun{Writer: w}
		if err = write(out, info, v.Journal.EachStep(r.Context(), info.ID)); err != nil && out.yes {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			h.Del("Content-Disposition") // the page of the error
		}
		return err
	}
}

var (
	profile = exported("application/octet-stream", ".pb.gz", export.Pprof)
	trace   = exported("application/json", ".trace.json", export.Chrome)
)
