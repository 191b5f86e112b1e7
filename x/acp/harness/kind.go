package harness

import (
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
)

// Part adds the kind acp and the check tests-pass to a program.
var Part = kinds.Kind{Name: "acp", Read: readKind, Checks: map[string]call.Check{"tests-pass": TestsPass}}

func readKind(r *kinds.Reader, m *form.Map, at *kinds.Reached) kinds.Builder {
	c := Config{Dir: r.Dir}
	m.Need("command")
	r.Path(m, "dir", &c.Dir)
	if c.Command = r.Argv(m, c.Dir); len(c.Command) > 0 {
		at.At, at.Command = c.Command[0], c.Command
	}
	kinds.SomeText(m, "mode", &c.Mode)
	c.Env = r.Env(m)
	c.Sandbox = r.Sandbox(m)
	if m.At("allow").Texts(&c.Allow); len(c.Allow) > 0 {
		r.Reach(m.At("allow"), "permits without asking", kinds.Whole(c.Allow))
	}
	if m.At("test").Texts(&c.Test); c.Test != nil && (len(c.Test) == 0 || c.Test[0] == "") {
		m.FaultAt("test", form.Invalid, "expected a program, such as [\"go\" \"test\" \"./...\"]")
	}
	if len(c.Test) > 0 {
		r.Reach(m.At("test"), "starts the program", kinds.Whole(c.Test))
	}
	return func(meta call.Metadata) (call.Capability, error) { return New(meta, c), c.Check() }
}
