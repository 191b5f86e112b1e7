package evidence

import (
	"context"
	"fmt"
	"io"

	"github.com/stonelayer/stone/internal/evidence"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// Part adds the option --as evidence of the command export and the command verify to a program; see cli.Part.
var Part = &evidence.Files{
	Write: func(ctx context.Context, w io.Writer, from journal.Journal, info journal.RunInfo) (string, error) {
		sum, err := write(ctx, w, from, info)
		return sum.String(), err
	},
	Verify: func(file io.Reader) (string, []string, error) {
		r, err := verify(file)
		return fmt.Sprintf("run %s: %s, %s, %s\nseal %s", text.Line(r.Run), text.Plural(r.Records, "record"),
			text.Plural(r.Nodes, "node"), text.Plural(r.Questions, "question"), r.Sum), r.Problems, err
	},
}
