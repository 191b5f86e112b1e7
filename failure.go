package stone

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// A Failure is why a step, and with it a run, ended without a result. In the
// DAG it is a node of type dag.Failure with the same kind and reason.
type Failure struct {
	Kind   string // what a program branches on, see package kind
	Reason string // one line, for a person
	Path   string // where in the tree it happened, as "review/loop[2]/draft"
	Cause  error  // the error of the body, nil if there was none
}

// Error returns kind, place and reason on one line.
func (f *Failure) Error() string {
	if f.Path == "" {
		return fmt.Sprintf("%s: %s", f.Kind, f.Reason)
	}
	return fmt.Sprintf("%s at %s: %s", f.Kind, f.Path, f.Reason)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// FailureKind returns the kind. An error that has this method gives the failure
// its kind when a body returns it.
func (f *Failure) FailureKind() string { return f.Kind }

// Fail makes the error with which a body fails in a kind of its own. Format and
// args are those of fmt.Errorf, %w included.
func Fail(kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Failure{Kind: kind, Reason: err.Error(), Cause: errors.Unwrap(err)}
}

// failureOf turns the error of a body into a failure.
func failureOf(err error, path string) *Failure {
	f := &Failure{Kind: kindOf(err), Reason: err.Error(), Path: path, Cause: err}
	var known *Failure
	if errors.As(err, &known) {
		f.Reason = known.Reason
		if known != err {
			f.Reason = err.Error()
		}
		if known.Path != "" {
			f.Path = known.Path
		}
	}
	return f
}

func kindOf(err error) string {
	var kinded interface{ FailureKind() string }
	switch {
	case errors.As(err, &kinded):
		return kinded.FailureKind()
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
