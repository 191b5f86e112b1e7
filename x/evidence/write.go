// Package evidence writes a recorded run to a single file. Anyone can later verify that the file is unchanged, without access to
// the journal.
//
// The file is in JSON Lines format: the run, its records, its nodes and its questions, one per line, and a seal that lists the
// name and SHA-256 of each line. Keep the seal's sum, or sign the file, to be able to detect any change.
package evidence

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

const version = 1 // version of the format

// line is one line of a file. Exactly one of its fields is set.
type line struct {
	Run      *head             `json:"run,omitempty"`
	Record   *record           `json:"record,omitempty"`
	Node     *journal.NodeInfo `json:"node,omitempty"`
	Question *journal.Question `json:"question,omitempty"`
	Seal     *seal             `json:"seal,omitempty"`
}

type (
	head struct {
		Evidence int             `json:"evidence"` // version of the format
		Info     journal.RunInfo `json:"info"`
	}
	record struct {
		Step journal.Step `json:"step"`
		Nth  int          `json:"nth,omitempty"` // index of the record among the records with the same kind and path, counted from 0
		// nil if a later record has replaced the result, so that only its sum and cost are known
		Result *step.Record `json:"result,omitempty"`
	}
	seal struct {
		Lines []entry `json:"lines"` // the lines before the seal, in order
		Sum   dag.ID  `json:"sum"`
	}
	entry struct {
		Name string `json:"name"`
		Sum  dag.ID `json:"sum"` // SHA-256 of the line
	}
)

// sum returns the SHA-256 of the entries' JSON.
func sum(entries []entry) dag.ID {
	text, _ := json.Marshal(entries) // strings and IDs can always be marshaled
	return sha256.Sum256(text)
}

// name returns a name that identifies the line within its run.
func (l line) name() string {
	switch {
	case l.Run != nil:
		return "the run"
	case l.Record != nil:
		if l.Record.Nth > 0 {
			return fmt.Sprintf("record %d of the %s %s", l.Record.Nth+1, l.Record.Step.Kind, l.Record.Step.Path)
		}
		return fmt.Sprintf("the %s %s", l.Record.Step.Kind, l.Record.Step.Path)
	case l.Node != nil:
		return fmt.Sprintf("the node %.12s", l.Node.ID)
	case l.Question != nil:
		return "the question " + l.Question.Path
	}
	return "the seal"
}

// write writes the evidence of a run to w and returns the sum of the seal. Steps without a result are omitted.
func write(ctx context.Context, w io.Writer, from journal.Journal, info journal.RunInfo) (dag.ID, error) {
	out := bufio.NewWriter(w)
	var entries []entry
	put := func(l line) error {
		text, err := l.text()
		if err == nil {
			entries = append(entries, entry{l.name(), sha256.Sum256(text)})
			_, err = out.Write(text)
		}
		return err
	}
	records := map[string]int{} // number of records so far, by kind and path
	err := put(line{Run: &head{version, info}})
	for s, failed := range from.EachStep(ctx, info.ID) {
		if err = cmp.Or(err, failed); err != nil || !s.Recorded {
			continue
		}
		var result step.Record
		result, err = from.Record(ctx, info.ID, s.Path, s.Kind)
		for _, raw := range []*json.RawMessage{&result.Content, &result.Kept} { // the sum covers the canonical form
			if err == nil && *raw != nil {
				*raw, err = canon.Canonical(*raw)
			}
		}
		place := s.Kind + " " + s.Path
		found := &result
		if result.Sum != s.Sum { // result belongs to a newer record than s
			found = nil
		}
		err = cmp.Or(err, put(line{Record: &record{s, records[place], found}}))
		records[place]++
	}
	for n, failed := range from.EachNode(ctx, info.ID) {
		if err = cmp.Or(err, failed); err == nil {
			err = put(line{Node: &n})
		}
	}
	questions, failed := from.Questions(ctx, info.ID)
	err = cmp.Or(err, failed)
	for _, q := range questions {
		err = cmp.Or(err, put(line{Question: &q}))
	}
	total := sum(entries)
	err = cmp.Or(err, put(line{Seal: &seal{entries, total}}))
	return total, cmp.Or(err, out.Flush())
}

// text returns the JSON of the line, followed by a line break.
func (l line) text() ([]byte, error) {
	var b bytes.Buffer
	in := json.NewEncoder(&b)
	in.SetEscapeHTML(false)
	err := in.Encode(l)
	return b.Bytes(), err
}
