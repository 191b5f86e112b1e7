package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/stonelayer/stone/serve/api"
)

// searching is the page for searching documents.
type searching struct {
	api.Search
	Searches []string
	Problem  string
	Found    *api.Found
	Asked    bool
}

// A hit is a passage as the page shows it.
type hit struct {
	api.Hit
	Rank int
}

// Hits returns the passages with their ranks.
func (s searching) Hits() (all []hit) {
	for i, h := range s.Found.Hits {
		all = append(all, hit{h, i + 1})
	}
	return all
}

// Reranked reports whether a reranker has ordered the passages.
func (s searching) Reranked() bool { return len(s.Found.Hits) > 0 && s.Found.Hits[0].FusedRank > 0 }

// Source returns where a passage is: the file and its lines.
func (h hit) Source() string {
	switch {
	case h.Page > 0:
		return fmt.Sprintf("%s, page %d", h.File, h.Page)
	case h.To > h.From:
		return fmt.Sprintf("%s:%d-%d", h.File, h.From, h.To)
	case h.From > 0:
		return fmt.Sprintf("%s:%d", h.File, h.From)
	}
	return h.File
}

// Part returns the contribution of a rank to the score.
func (hit) Part(rank int) string { return fmt.Sprintf("%.4f", 1/float64(60+rank)) }

// search shows the form and, once it has been sent, the passages. The form uses POST, because searches cost money.
func search(w http.ResponseWriter, r *http.Request, v View) error {
	if v.Search == nil {
		return missing("No capability of this server searches documents, or you may not ask it.")
	}
	body := searching{Searches: v.Searches}
	if r.Method == http.MethodPost {
		if err := readForm(w, r); err != nil {
			return err
		}
		body.Asked = true
		body.Search = api.Search{Capability: r.PostForm.Get("capability"), Text: r.PostForm.Get("text"), Under: r.PostForm.Get("under"), Words: r.PostForm.Get("words") != ""}
		k, err := strconv.Atoi(cmp.Or(r.PostForm.Get("k"), "10"))
		body.K = k
		var found api.Found
		if err != nil {
			body.Problem = "The number of passages cannot be read: want 1 to 100."
		} else if found, err = v.Search(r, body.Search); err == nil {
			body.Found = &found
		} else if p := (*api.Problem)(nil); errors.As(err, &p) && (p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusBadGateway) {
			body.Problem = p.Detail
		} else {
			return err
		}
	}
	return v.show(w, r, "search", frame{Title: "Search", Here: "search", Body: body})
}
