package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A file contains only the first steps and the first bytes of their contents.
const (
	stepsOfFile = 2000
	bytesOfFile = 16 << 20
	bytesOfStep = 16 << 10
)

// A fileStep is a step as a file shows it.
type fileStep struct {
	row
	*piece
}

// Write writes a run as one HTML file that needs no server and has no script: its state, its failure, its steps and their
// contents. The file contains at most the first 2,000 steps, the first 16 KiB of each content, and 16 MiB of contents in total.
func Write(ctx context.Context, w io.Writer, j journal.Journal, run string) error {
	v := View{Journal: j}
	info, err := find(ctx, v, run)
	if err != nil {
		return err
	}
	body := struct {
		runPage
		All     []fileStep
		More    int
		Drawing *drawing
	}{runPage: runPage{runRow: rowOf(info), Failed: info.State == journal.Failed && info.Failure != nil}}
	if body.Failed {
		err = body.explain(ctx, v)
	} else if info.State == journal.Done && info.Node != (dag.ID{}) {
		if body.Result, err = pieceOf(ctx, v, info, info.Node.String()); err == nil {
			body.Result.Eval, err = evaluatedOf(ctx, v, info, body.Result)
			body.Result.Eval.detach()
		}
	}
	if err != nil {
		return err
	}
	read, err := view.Read(ctx, j, info, false)
	if err != nil {
		return err
	}
	body.Results, body.Cost = read.Recorded, read.Cost
	if body.Asked, err = askedOf(ctx, v, read); err != nil {
		return err
	}
	steps, whole, more, err := firstOf(ctx, j, read)
	if err != nil {
		return err
	}
	places, err := read.Places(ctx)
	if err != nil {
		return err
	}
	if body.Drawing = draw(info, places); body.Drawing != nil {
		for i := range body.Drawing.Boxes {
			body.Drawing.Boxes[i].URL = "" // the file has no other pages
		}
	}
	body.More = more
	left := bytesOfFile
	for _, s := range steps {
		n, err := recordOf(ctx, v, info, s)
		if err != nil {
			return err
		}
		room := n.read(min(bytesOfStep, left))
		left -= len(n.Text)
		if s.Kind == "leaf" {
			if n.Talk, err = agentTalk(ctx, v, info.ID, s.Path, n.Talk, &room); err != nil {
				return err
			}
			n.Talk.detach()
		}
		if record := call.RecordIn(n.Meta); record != nil {
			if n.Call, err = calledOf(ctx, j, run, s.Path, record); err != nil {
				return err
			}
			n.Call.Run = "" // the file has no other pages
		}
		b := journal.Branch{Path: s.Path, Step: &s, Started: s.Started, Ended: s.Ended, Usage: s.Usage}
		if !s.Recorded {
			b.Open = 1
		}
		r, err := read.Row(ctx, b)
		if err != nil {
			return err
		}
		body.All = append(body.All, fileStep{row{Row: r, Bar: whole.bar(s.Started, s.Ended)}, n})
	}
	return writeFile(w, frame{Title: info.ID + " · " + info.Pipeline, Body: body})
}

// firstOf returns the steps that a file contains, the time span of all steps, and the number of steps omitted. For a large run,
// only the pauses between the first steps are found.
func firstOf(ctx context.Context, j journal.Journal, run *view.Run) (steps []journal.Step, whole span, more int, err error) {
	if !run.Large {
		for _, s := range run.All {
			whole.add(s.Started, s.Ended)
		}
		whole.fold(run.All)
		more = max(len(run.All)-stepsOfFile, 0)
		return run.All[:len(run.All)-more], whole, more, nil
	}
	top, err := run.Level(ctx, "", journal.Page{Limit: 1})
	if err != nil {
		return nil, whole, 0, err
	}
	whole.add(top.Sum.Started, top.Sum.Ended)
	for s, err := range j.EachStep(ctx, run.ID) {
		if err != nil {
			return nil, whole, 0, err
		}
		if s.Kind == step.Value { // the outline does not count values
			continue
		}
		if steps = append(steps, s); len(steps) == stepsOfFile {
			break
		}
	}
	whole.fold(steps)
	return steps, whole, max(top.Sum.Recorded+top.Sum.Open-len(steps), 0), nil
}

// writeFile renders a file, including its style sheet, which the policy permits by its digest.
func writeFile(w io.Writer, f frame) error {
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(style)
	var body, out bytes.Buffer
	if err := templates.ExecuteTemplate(&body, "filed", f.Body); err != nil {
		return err
	}
	err = templates.ExecuteTemplate(&out, "file", struct {
		Title, Policy string
		Style         template.CSS
		HTML          template.HTML // a template has already escaped it
	}{f.Title, fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:])), template.CSS(style), template.HTML(body.String())})
	if err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}
