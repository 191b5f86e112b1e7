package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/schema"
)

// maxRow is the length of a row in bytes.
const maxRow = 16 << 20

// A reader reads the rows of a data set. Rows are counted from 1; in CSV, the header does
// not count.
type reader interface {
	next() (cols columns, row int, err error)
	broken() bool // no further row can be read
	Close() error
}

// columns are the cells of a row.
type columns interface {
	get(name string) (cell, bool)
	label(name string) (string, error)
	names() []string
}

// A cell is one value: JSON, or the text of a cell of a CSV file.
type cell struct {
	json  json.RawMessage
	plain string // if json is nil
}

// canonical returns the value as canonical JSON. A plain text is JSON where the schema takes
// something other than a string.
func (c cell) canonical(s *schema.Schema) (json.RawMessage, error) {
	if c.json != nil {
		return canon.AppendJSON(nil, c.json)
	}
	text, err := canon.Append(nil, c.plain)
	if err != nil || s == nil || s.Validate(context.Background(), text) == nil {
		return text, err
	}
	if data, err := canon.AppendJSON(nil, []byte(c.plain)); err == nil {
		return data, nil
	}
	return text, nil
}

// fit returns the value of a column if the schema accepts it.
func (c cell) fit(ctx context.Context, name string, s *schema.Schema) (json.RawMessage, error) {
	data, err := c.canonical(s)
	if err == nil {
		err = fits(ctx, s, data)
	}
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", name, err)
	}
	return data, nil
}

// text returns a text as it is, and any other value as JSON.
func (c cell) text() string {
	if c.json == nil {
		return c.plain
	}
	var s string
	if json.Unmarshal(c.json, &s) == nil {
		return s
	}
	return string(c.json)
}

type object map[string]json.RawMessage

func (o object) get(name string) (cell, bool) { v, ok := o[name]; return cell{json: v}, ok }

func (o object) names() []string { return sortedKeys(o) }

func (o object) label(name string) (string, error) { return label(o, name) }

func label(cols columns, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	value, ok := cols.get(name)
	if !ok {
		return "", missing(cols, name, "")
	}
	return value.text(), nil
}

// missing is the error of a row without a column. Why says what needs it.
func missing(cols columns, name, why string) error {
	return fmt.Errorf("column %s is missing%s; the row has %s", name, why, text.Cut(strings.Join(cols.names(), ", "), 80))
}

// lines reads JSON Lines.
type lines struct {
	io.Closer
	scan *bufio.Scanner
	row  int
	done bool
}

func newLines(f io.ReadCloser) *lines {
	scan := bufio.NewScanner(f)
	scan.Buffer(make([]byte, 64<<10), maxRow)
	return &lines{Closer: f, scan: scan}
}

func (l *lines) broken() bool { return l.done }

func (l *lines) next() (columns, int, error) {
	for l.scan.Scan() {
		l.row++
		if line := bytes.TrimSpace(l.scan.Bytes()); len(line) > 0 {
			o, err := readObject(bytes.Clone(line))
			return o, l.row, err
		}
	}
	l.done = true
	if err := l.scan.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, l.row + 1, fmt.Errorf("longer than %d MiB", maxRow>>20)
	} else if err != nil {
		return nil, l.row + 1, err
	}
	return nil, l.row, io.EOF
}

func readObject(data []byte) (object, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil || o == nil {
		return nil, errors.New("want a JSON object on one line")
	}
	return o, nil
}

// values reads the rows of a program.
type values struct {
	rows []any
	row  int
}

func (v *values) Close() error { return nil }
func (v *values) broken() bool { return false }

func (v *values) next() (columns, int, error) {
	if v.row == len(v.rows) {
		return nil, v.row, io.EOF
	}
	v.row++
	data, err := json.Marshal(v.rows[v.row-1])
	if err != nil {
		return nil, v.row, err
	}
	o, err := readObject(data)
	return o, v.row, err
}

// table reads CSV, whose first line names the columns.
type table struct {
	io.Closer
	csv  *csv.Reader
	at   map[string]int
	row  int
	done bool
}

func newCSV(f io.ReadCloser) (*table, error) {
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return nil, errors.New("the first line has to name the columns")
	}
	header[0] = string(bytes.TrimPrefix([]byte(header[0]), []byte("\ufeff")))
	t := &table{Closer: f, csv: r, at: map[string]int{}}
	for i, name := range header {
		if _, twice := t.at[name]; twice {
			return nil, fmt.Errorf("two columns are named %q", name)
		}
		t.at[name] = i
	}
	return t, nil
}

func (t *table) broken() bool { return t.done }

func (t *table) next() (columns, int, error) {
	cells, err := t.csv.Read()
	switch {
	case errors.Is(err, io.EOF):
		t.done = true
		return nil, t.row, err
	case errors.Is(err, csv.ErrFieldCount):
		t.row++
		return nil, t.row, fmt.Errorf("%d columns, and the header names %d", len(cells), len(t.at))
	case err != nil:
		t.done = true
		return nil, t.row + 1, err
	}
	t.row++
	return record{t, cells}, t.row, nil
}

// record is a row of a table.
type record struct {
	*table
	cells []string
}

func (r record) get(name string) (cell, bool) {
	i, ok := r.at[name]
	if !ok {
		return cell{}, false
	}
	return cell{plain: r.cells[i]}, true
}

func (r record) names() []string { return sortedKeys(r.at) }

func (r record) label(name string) (string, error) { return label(r, name) }
