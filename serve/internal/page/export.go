package page

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/journal"
)

// exported answers with a run in the format of another tool.
func exported(kind, extension string, write func(io.Writer, journal.RunInfo, []journal.Step) error) func(http.ResponseWriter, *http.Request, View) error {
	return func(w http.ResponseWriter, r *http.Request, v View) error {
		info, err := find(r.Context(), v, r.PathValue("id"))
		if err != nil {
			return err
		}
		steps, err := v.Journal.Steps(r.Context(), info.ID)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := write(&out, info, steps); err != nil {
			return err
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(info.ID+extension))
		_, _ = out.WriteTo(w) // or the browser has gone
		return nil
	}
}

var (
	profile = exported("application/octet-stream", ".pb.gz", export.Pprof)
	trace   = exported("application/json", ".trace.json", export.Chrome)
)
