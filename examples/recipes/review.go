package recipes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// FileDiff is the change to a file, in unified diff format.
type FileDiff struct {
	File string `json:"file"`
	Diff string `json:"diff"`
}

type Comments struct {
	Comments []Comment `json:"comments"`
}

type Comment struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line" jsonschema:"in the new file; it must be an added line"`
	Severity string `json:"severity" enum:"bug,risk,style"`
	Text     string `json:"text"`
}

var (
	PullRequest = dag.NewType[string]("diff")
	FileDiffs   = dag.NewType[[]FileDiff]("file-diffs")
	OneFile     = dag.NewType[FileDiff]("file-diff")
	Commented   = dag.NewType[Comments]("comments")
	Checked     = dag.NewType[Comments]("checked")
	Reviewed    = dag.NewType[string]("review")
	OnLines     = dag.NewType[int]("on-lines")
)

// Review reviews the diff of a pull request. Files are reviewed concurrently, and bugs are listed first. A comment on a line that
// was not added is rejected.
func Review(m llm.Model) stone.Ashlar {
	file := stone.Seq("file",
		agent.New("comment", Commented, m, agent.Config{
			System:    agent.Say("You review the change of one file. Comment only on bugs, risks and style that matter. No comment is a good answer."),
			User:      agent.Prompt(OneFile, func(f FileDiff) string { return numbered(f.Diff) }),
			Adversary: stone.Func2("on-lines", OneFile, Commented, OnLines, onLines),
		}),
		stone.Func2("name", OneFile, Commented, Checked, func(_ context.Context, f FileDiff, c Comments) (Comments, error) {
			out := Comments{slices.Clone(c.Comments)}
			for i := range out.Comments {
				out.Comments[i].File = f.File
			}
			return out, nil
		}),
	)
	return stone.Seq("review",
		stone.Func("split", PullRequest, FileDiffs, split),
		stone.Map("files", FileDiffs, OneFile, file, stone.AllLanes()),
		stone.Reduce(stone.Func("sort", dag.Lanes(Checked), Reviewed, sorted)),
	)
}

// split splits a diff by file.
func split(_ context.Context, diff string) (out []FileDiff, err error) {
	for _, part := range strings.Split("\n"+diff, "\ndiff --git ")[1:] {
		head, _, _ := strings.Cut(part, "\n")
		if _, name, ok := strings.Cut(head, " b/"); ok {
			out = append(out, FileDiff{name, part})
		}
	}
	if len(out) == 0 {
		return nil, stone.Fail("no-diff", "the input has no line \"diff --git\": give the output of git diff")
	}
	return out, nil
}

// added calls line with the number of each added line in the new file.
func added(diff string, line func(n int)) {
	n := 0
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "@@"):
			_, after, _ := strings.Cut(l, "+")
			first, _, _ := strings.Cut(strings.Fields(after)[0], ",")
			n, _ = strconv.Atoi(first)
		case n > 0 && strings.HasPrefix(l, "+"):
			line(n)
			n++
		case n > 0 && strings.HasPrefix(l, " "):
			n++
		}
	}
}

// numbered returns the diff with line numbers, so that the model knows on which lines it may comment.
func numbered(diff string) string {
	var lines []string
	added(diff, func(n int) { lines = append(lines, strconv.Itoa(n)) })
	return diff + "\nAdded lines: " + strings.Join(lines, ", ")
}

func onLines(_ context.Context, f FileDiff, c Comments) (int, error) {
	known := map[int]bool{}
	added(f.Diff, func(n int) { known[n] = true })
	for _, one := range c.Comments {
		if !known[one.Line] {
			return 0, stone.Fail(Unsupported, "line %d of %s was not added: comment on an added line", one.Line, f.File)
		}
	}
	return len(c.Comments), nil
}

func sorted(_ context.Context, all []Comments) (string, error) {
	var list []Comment
	for _, c := range all {
		list = append(list, c.Comments...)
	}
	order := []string{"bug", "risk", "style"}
	slices.SortStableFunc(list, func(a, b Comment) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	var out strings.Builder
	for _, c := range list {
		fmt.Fprintf(&out, "%s:%d: %s: %s\n", c.File, c.Line, c.Severity, c.Text)
	}
	return out.String(), nil
}
