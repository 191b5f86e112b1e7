// Command table reads the output of go test -bench in this module and prints one table:
// Stone, the floor, the best peer, the bound and whether it is met. Several rounds may be
// concatenated; see the Makefile.
//
//	go test -run '^$' -bench . | go run ./cmd/table
//
// Progress goes to standard error. A missed figure is a word in the table, not
// a failure: the exit status is 1 only when a benchmark failed or a row has no
// figure.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out, progress io.Writer) error {
	m, err := read(in, progress)
	if err != nil {
		return err
	}
	if len(m.samples) > 0 {
		if err := m.print(out, rows); err != nil {
			return err
		}
	}
	if len(m.failures) > 0 {
		return fmt.Errorf("go test failed, see above; its first complaint: %s", m.failures[0])
	}
	return m.missing(rows)
}
