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
	"iter"
	"strings"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/schema"
)

// maxRow is the maximum length of a row in bytes.
const maxRow = 16 << 20

// A source provides the rows of a data set. After a faulty row it continues, unless the next row cannot be read.
type source struct {
	name  string
	rows  iter.Seq2[numbered, error]
	close func() error
}

// A numbered is a row with its number. Rows are counted from 1; the header of a CSV file is not counted.
type numbered struct {
	columns
	number int
}

// columns provides the cells of a row.
type columns interface {
	get(name string) (cell, bool)
	names() []string
}

// A cell is a single value: JSON, or the text of a CSV cell.
type cell struct {
	json  json.RawMessage
	plain string // text, if json is nil
}

// canonical returns the value as canonical JSON. Plain text is parsed as JSON if the schema accepts values other than strings.
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

// fit returns the value in a column as canonical JSON, or an error if the schema does not accept it.
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

// text returns the cell as text: a string unchanged, and any other value as JSON.
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

// missing returns the error for a row without a required column. The argument why states what needs the column.
func missing(cols columns, name, why string) error {
	return fmt.Errorf("column %s is missing%s; the row has %s", name, why, text.Cut(strings.Join(cols.names(), ", "), 80))
}

// lines reads JSON Lines.
func lines(f io.Reader) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		scan := bufio.NewScanner(f)
		scan.Buffer(make([]byte, 64<<10), maxRow)
		n := 1
		for ; scan.Scan(); n++ {
			if line := bytes.TrimSpace(scan.Bytes()); len(line) > 0 {
				o, err := readObject(line)
				if !yield(numbered{o, n}, err) {
					return
				}
			}
		}
		if err := scan.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(numbered{number: n}, fmt.Errorf("longer than %d MiB", maxRow>>20))
		} else if err != nil {
			yield(numbered{number: n}, err)
		}
	}
}

func readObject(data []byte) (object, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil || o == nil {
		return nil, errors.New("want a JSON object on one line")
	}
	return o, nil
}

// values returns a source of rows that the program has supplied.
func values(rows []any) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		for i, v := range rows {
			var o object
			data, err := json.Marshal(v)
			if err == nil {
				o, err = readObject(data)
			}
			if !yield(numbered{o, i + 1}, err) {
				return
			}
		}
	}
}

// table returns a source that reads CSV, whose first line contains the names of the columns.
func table(f io.Reader) (iter.Seq2[numbered, error], error) {
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return nil, errors.New("the first line must name the columns")
	}
	at := map[string]int{}
	for i, name := range header {
		if name == "" { // spreadsheets may have empty columns
			continue
		}
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("two columns are named %q", name)
		}
		at[name] = i
	}
	return func(yield func(numbered, error) bool) {
		for n := 1; ; n++ {
			cells, err := r.Read()
			miscounted := errors.Is(err, csv.ErrFieldCount)
			if miscounted {
				err = fmt.Errorf("%d columns, but the header has %d", len(cells), len(header))
			}
			if err == io.EOF || !yield(numbered{record{at, cells}, n}, err) || err != nil && !miscounted {
				return
			}
		}
	}, nil
}

// A record is a row of a table.
type record struct {
	at    map[string]int
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
