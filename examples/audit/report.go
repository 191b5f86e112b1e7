package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// worst bounds the number of worst offenders.
const worst = 5

func problems(_ context.Context, l Ledger) (Report, error) {
	var b strings.Builder
	l.head(&b, "**Something is wrong.**")
	for _, c := range l.Checked {
		var lines []string
		if e := c.buildError(); e != "" {
			lines = append(lines, fmt.Sprintf("does not build, tried %d times: `%s`", c.Package.Round+1, oneLine(e)))
		}
		for _, p := range c.Vet.Problems {
			lines = append(lines, fmt.Sprintf("vet: `%s`", oneLine(p)))
		}
		if c.Test.HasTests && !c.Test.Passed && c.Test.BuildError == "" {
			lines = append(lines, "tests fail:\n\n  ```\n  "+strings.ReplaceAll(c.Test.Output, "\n", "\n  ")+"\n  ```")
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n### %s\n\n- %s\n", c.Package.Path, strings.Join(lines, "\n- "))
		}
	}
	for _, lost := range l.Lost {
		fmt.Fprintf(&b, "\n- could not be checked: %s\n", oneLine(lost))
	}
	l.tables(&b)
	return Report{Text: b.String(), Wrong: true}, nil
}

func clean(_ context.Context, l Ledger) (Report, error) {
	var b strings.Builder
	l.head(&b, "Everything builds, go vet is content, and all tests pass.")
	l.tables(&b)
	return Report{Text: b.String()}, nil
}

func (l Ledger) head(b *strings.Builder, verdict string) {
	fmt.Fprintf(b, "# Audit of %s\n\n%s\n", l.Module.Path, verdict)
}

func (l Ledger) tables(b *strings.Builder) {
	fmt.Fprintf(b, "\n| package | builds | vet | tests | coverage | without comment | TODO, FIXME |\n|---|---|--:|---|--:|--:|--:|\n")
	var undocumented, marked int
	for _, c := range l.Checked {
		undocumented += len(c.Source.Undocumented)
		marked += len(c.Source.Marks)
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s | %d | %d |\n", c.short(l.Module), c.builds(), len(c.Vet.Problems),
			c.tests(), c.covered(), len(c.Source.Undocumented), len(c.Source.Marks))
	}
	fmt.Fprintf(b, "\n%d packages, %d exported names without a comment, %d lines marked TODO or FIXME.\n", len(l.Checked), undocumented, marked)
	l.offenders(b)
}

// offenders lists the packages with the most findings.
func (l Ledger) offenders(b *strings.Builder) {
	ranked := slices.DeleteFunc(slices.Clone(l.Checked), func(c Checked) bool { return c.weight() == 0 })
	slices.SortStableFunc(ranked, func(x, y Checked) int { return cmp.Compare(y.weight(), x.weight()) })
	if len(ranked) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Worst offenders\n\n")
	for i, c := range ranked[:min(worst, len(ranked))] {
		fmt.Fprintf(b, "%d. %s: %s\n", i+1, c.short(l.Module), strings.Join(c.complaints(), "; "))
	}
}

// weight orders packages by the severity of their findings.
func (c Checked) weight() int {
	w := 20*len(c.Vet.Problems) + 2*len(c.Source.Undocumented) + len(c.Source.Marks)
	if c.buildError() != "" {
		w += 1000
	}
	if c.Test.HasTests && !c.Test.Passed {
		w += 500
	}
	if c.Test.Coverage >= 0 && c.Test.Coverage < 50 {
		w += int(50 - c.Test.Coverage)
	}
	return w
}

func (c Checked) complaints() []string {
	var out []string
	add := func(condition bool, format string, args ...any) {
		if condition {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(c.buildError() != "", "does not build")
	add(c.Test.HasTests && !c.Test.Passed && c.Test.BuildError == "", "tests fail")
	add(len(c.Vet.Problems) > 0, "%d findings of go vet", len(c.Vet.Problems))
	add(c.Test.Coverage >= 0 && c.Test.Coverage < 50, "coverage %s", c.covered())
	add(len(c.Source.Undocumented) > 0, "without comment: %s", some(c.Source.Undocumented))
	add(len(c.Source.Marks) > 0, "marked: %s", some(c.Source.Marks))
	return out
}

func (c Checked) builds() string {
	if c.buildError() != "" {
		return "**no**"
	}
	return "yes"
}

func (c Checked) tests() string {
	switch {
	case c.Test.BuildError != "":
		return "**not built**"
	case !c.Test.HasTests:
		return "none"
	case c.Test.Passed:
		return "pass"
	}
	return "**fail**"
}

func (c Checked) covered() string {
	if c.Test.Coverage < 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", c.Test.Coverage)
}

// short is the path of the package within its module.
func (c Checked) short(m Module) string {
	if rest, ok := strings.CutPrefix(c.Package.Path, m.Path); ok {
		return "`." + rest + "`"
	}
	return "`" + c.Package.Path + "`"
}

// some lists the first few items.
func some(all []string) string {
	const few = 3
	list := "`" + strings.Join(all[:min(few, len(all))], "`, `") + "`"
	if len(all) > few {
		list += fmt.Sprintf(" and %d more", len(all)-few)
	}
	return list
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "`", "'").Replace(strings.TrimSpace(s))
}
