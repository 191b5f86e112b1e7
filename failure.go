package stone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/kind"
)

// A Failure explains why a step or a run ended without a result. In the DAG, it is a node of type dag.Failure with the same kind
// and reason.
type Failure struct {
	Kind   kind.Kind // the kind of failure, for programs
	Reason string    // human-readable, on one line
	Path   string    // the address of the step that failed, for example "review/loop[2]/draft"
	Cause  error     // the error that the body returned, or nil
}

// Error returns the kind, the path and the reason on one line. Slashes in names are not escaped.
func (f *Failure) Error() string {
	if f.Path == "" {
		return fmt.Sprintf("%s: %s", f.Kind, f.Reason)
	}
	return fmt.Sprintf("%s at %s: %s", f.Kind, address.Readable(f.Path), f.Reason)
}

// Is reports whether target is f.Kind, so that errors.Is(err, kind.Timeout) works.
func (f *Failure) Is(target error) bool {
	k, ok := target.(kind.Kind)
	return ok && k == f.Kind
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// FailureKind returns the kind as a string. The method exists so that a body that returns f fails with the same kind; any error
// with this method determines the kind of its failure.
func (f *Failure) FailureKind() string { return string(f.Kind) }

// Fail returns an error with the given kind, formatted like fmt.Errorf, including %w. A body that returns it fails with that
// kind.
func Fail(k kind.Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	f := &Failure{Kind: k, Reason: err.Error()}
	switch err.(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		f.Cause = err
	}
	return f
}

// stopped returns the failure of work that ends because ctx is done. Its kind is the cause's kind if the cause has one, "timeout"
// after a deadline, and otherwise "canceled".
func stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	f := failureOf(cause, "")
	if f.Kind == kind.Error {
		f.Kind = kindOf(ctx.Err())
	}
	if !errors.Is(cause, ctx.Err()) {
		f.Cause = errors.Join(cause, ctx.Err())
	}
	return f
}

// ofRun reports whether an error concerns the run rather than the step that returned it: a question is waiting for an answer, or
// the run's budget is exhausted. Such an error ends a fan-out without dropping a lane. Errors other than kind.Waiting declare
// that they concern the run with a method EndsRun.
func ofRun(err error) bool {
	return errors.Is(err, kind.Waiting) || fault.EndsRun(err)
}

// passing reports whether err makes f fail only in this process: the failure is not recorded, and a resumed run repeats the step.
// A failure that a Rescue may handle is always recorded, because otherwise a resumed run could take another path.
func (f *frame) passing(err error) bool {
	return errors.Is(err, kind.Waiting) || ofRun(err) && !f.rescued()
}

// rescued reports whether f is within the body of a Rescue.
func (f *frame) rescued() bool {
	for ; f.up != nil; f = f.up {
		if f.up.spec.form == rescueForm && f.seg == childSegment && f.index == 0 {
			return true
		}
	}
	return false
}

// interrupted returns ctx's cause if err was caused by the end of ctx, and err otherwise.
func (f *frame) interrupted(err error) error {
	if f.Context.Err() == nil {
		return err
	}
	switch kindOf(err) {
	case kind.Error, kind.Canceled, kind.Timeout:
	default:
		return err
	}
	why := stopped(f.Context).(*Failure)
	if !errors.Is(err, f.Context.Err()) && !errors.Is(err, context.Cause(f.Context)) {
		why.Reason = fmt.Sprintf("%s: %v", why.Reason, err)
		why.Cause = errors.Join(why.Cause, err)
	}
	return why
}

// failureOf returns the failure for an error that a body has returned. The reason is on one line.
func failureOf(err error, path string) *Failure {
	f := rawFailure(err, path)
	f.Reason = oneLine(f.Reason)
	return f
}

// oneLine returns s with its lines joined by semicolons. Errors from errors.Join, for example, have several lines.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\r' || r == '\n' }) {
		line = strings.TrimSpace(line)
		switch was := b.String(); {
		case line == "" || was == "":
		case strings.HasSuffix(was, ":"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// rawFailure is like failureOf, but keeps the line breaks of the error. The reason does not start with the kind and the place,
// since Failure.Error adds them.
func rawFailure(err error, path string) *Failure {
	f := &Failure{Kind: cmp.Or(kindOf(err), kind.Error), Reason: err.Error(), Path: path, Cause: err}
	var known *Failure
	if errors.As(err, &known) {
		if known == err {
			f.Reason = known.Reason
		}
		if known.Path != "" {
			f.Path = known.Path
			f.Reason = strings.TrimPrefix(f.Kind.Trim(f.Reason), fmt.Sprintf("%s at %s: ", f.Kind, address.Readable(f.Path)))
		}
	}
	f.Reason = f.Kind.Trim(f.Reason)
	return f
}

func kindOf(err error) kind.Kind {
	if kinded, ok := errors.AsType[fault.Kinder](err); ok {
		return kind.Kind(kinded.FailureKind())
	}
	switch {
	case errors.Is(err, dag.ErrUndeclared):
		return kind.UndeclaredQuery
	case errors.Is(err, dag.ErrMissing):
		return kind.MissingInput
	case errors.Is(err, context.DeadlineExceeded):
		return kind.Timeout
	case errors.Is(err, context.Canceled):
		return kind.Canceled
	}
	return kind.Error
}

// failureIn returns the failure that a body has reported as a failure node of its own.
func failureIn(n *dag.Node, cause error) error {
	content, err := dag.Failure.Of(n)
	if err != nil {
		return badContent(err)
	}
	return &Failure{Kind: content.Kind, Reason: content.Reason, Cause: cause}
}

// metaEndsRun is the meta key of failures that concern the run rather than one step; see ofRun.
const metaEndsRun = "ends-run"

// meta returns the meta of a failure's node: the path, the stack of a panic, and
// the result of FailureMeta if the error has that method.
func (f *Failure) meta() map[string]string {
	meta := map[string]string{"path": f.Path}
	if ofRun(f) {
		meta[metaEndsRun] = "yes"
	}
	var p interface{ stack() string }
	if errors.As(f, &p) && p.stack() != "" {
		meta["stack"] = p.stack()
	}
	for k, v := range fault.Meta(f) {
		k = strings.ToValidUTF8(k, "\uFFFD")
		if _, ours := meta[k]; !ours && k != "stack" {
			meta[k] = strings.ToValidUTF8(v, "\uFFFD")
		}
	}
	return meta
}

// cleaned returns copies of a failure and its meta from which the secrets known to the recorder are removed.
func (r *run) cleaned(f *Failure) (*Failure, map[string]string) {
	meta := f.meta()
	c, ok := r.recorder.(interface{ Clean(string) string })
	if !ok {
		return f, meta
	}
	for k, v := range meta {
		meta[k] = c.Clean(v)
	}
	if reason := c.Clean(f.Reason); reason != f.Reason {
		clean := *f
		clean.Reason = reason
		f = &clean
	}
	return f, meta
}

// A Finding is one error or warning about a pipeline.
type Finding struct {
	Type    string `json:"type"`              // a code such as "missing-producer"; docs/reference/findings.md lists them
	Warning bool   `json:"warning,omitempty"` // whether this is a warning: the pipeline may still run
	Ashlar  string `json:"ashlar"`            // the name of the ashlar at fault
	Path    string `json:"path"`              // the address of that ashlar in the tree
	Queried string `json:"queried,omitempty"` // the type, or the field of a lens, that is at fault
	Message string `json:"message"`           // what is wrong and what to do
	// Suggestion is the valid name most similar to an invalid one, for example a type's name, or "" if there is none.
	Suggestion string `json:"suggestion,omitempty"`
}

// String returns the finding on one line: [type] ashlar: message. It escapes invisible characters of names:
// line breaks, terminal controls, changes of direction.
func (f Finding) String() string {
	line := fmt.Sprintf("[%s] %s: %s", f.Type, cmp.Or(f.Ashlar, `""`), f.Message)
	if f.Suggestion != "" {
		line += fmt.Sprintf("; did you mean %q?", f.Suggestion)
	}
	if f.Path != "" && f.Path != f.Ashlar {
		line += fmt.Sprintf(" (at %s)", address.Readable(f.Path))
	}
	var b strings.Builder
	for _, r := range line {
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToGraphic(r), "'"))
		}
	}
	return b.String()
}

// Findings lists a validation's findings, in tree order.
type Findings []Finding

// Errors returns the findings that are errors, which prevent a run.
func (fs Findings) Errors() Findings { return fs.filter(false) }

// Warnings returns the findings that are warnings, which do not prevent a run.
func (fs Findings) Warnings() Findings { return fs.filter(true) }

func (fs Findings) filter(warning bool) Findings {
	var out Findings
	for _, f := range fs {
		if f.Warning == warning {
			out = append(out, f)
		}
	}
	return out
}

// Err returns an *Invalid with all findings if at least one of them is an error, and otherwise nil.
func (fs Findings) Err() error {
	if len(fs) == 0 || len(fs.Errors()) == 0 {
		return nil
	}
	return &Invalid{fs}
}

// Invalid is the error for a pipeline, or an ashlar given to RunDynamic, that is rejected before any of it runs.
type Invalid struct{ Findings Findings }

// FailureKind returns kind.Invalid.
func (e *Invalid) FailureKind() string { return string(kind.Invalid) }

// Error returns a message with the first error and the number of the other errors.
func (e *Invalid) Error() string {
	errs := e.Findings.Errors()
	if len(errs) == 1 {
		return "pipeline is invalid: " + errs[0].String()
	}
	return fmt.Sprintf("pipeline is invalid: %s (and %d more)", errs[0], len(errs)-1)
}
