package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/journal"
)

// A server waits for a database that starts with it, and not for one that does not exist.
func TestWaitForDatabase(t *testing.T) {
	gone, late := errors.New("database x does not exist"), fmt.Errorf("database x does not answer: %w", journal.ErrUnavailable)
	for _, tt := range []struct {
		name, wait string
		says       []error // of each attempt
		code       int
	}{
		{"late", "1m", []error{late, late, gone}, cli.Usage},
		{"not at all", "0s", []error{late}, cli.Failed},
		{"gone", "1m", []error{gone}, cli.Usage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			database := stores.Server{
				Open: func(context.Context, string, string) (stores.Store, error) {
					asked++
					return nil, tt.says[min(asked, len(tt.says))-1]
				},
				Secret: func(string) string { return "" },
			}
			var errs bytes.Buffer
			code, _ := commandOf(t.Context(), append(slices.Clone(parts), database), greet(), &errs, "serve", "--address", "127.0.0.1:0", "--db", "postgres://u@127.0.0.1:1/n", "--wait", tt.wait)
			if last := tt.says[len(tt.says)-1]; code != tt.code || asked != len(tt.says) || !strings.Contains(errs.String(), last.Error()) {
				t.Errorf("exit code %d after %d attempts, want %d after %d\n%s", code, asked, tt.code, len(tt.says), &errs)
			}
			if n := strings.Count(errs.String(), "waiting for the database"); n != min(1, len(tt.says)-1) {
				t.Errorf("the wait is told %d times\n%s", n, &errs)
			}
		})
	}
}
