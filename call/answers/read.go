package answers

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/llm"
)

const (
	maxFile = 1 << 30
	maxLine = 16 << 20
)

func open(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", name)
	case err == nil && info.Size() > maxFile:
		err = fmt.Errorf("%s has %d MB: want at most %d", name, info.Size()>>20, maxFile>>20)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// digest returns the digest of a file's content.
func digest(name string) (string, error) {
	f, err := open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// read returns the answers in the file, by key.
func (c Config) read() (map[string]answer, error) {
	f, err := open(c.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows := map[string]answer{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := c.add(rows, n, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", c.File, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", c.File, n+1, err)
	}
	if len(rows) == 0 {
		err := fmt.Errorf("%s has no answers with the text at %q", c.File, cmp.Or(c.Text.String(), "text"))
		if c.Model != "" {
			err = fmt.Errorf("%w and the model %q", err, c.Model)
		}
		return nil, err
	}
	return rows, nil
}

// add adds the answer in a row to the book if the row belongs to the configured model.
func (c Config) add(rows map[string]answer, line int, data []byte) error {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(data, &row); err != nil || row == nil {
		return cmp.Or(err, errors.New("want an object"))
	}
	if model, _ := stringOf(row["model"]); c.Model != "" && model != c.Model {
		return nil
	}
	raw := c.Text.or("text").in(row)
	if raw == nil {
		return nil
	}
	a := answer{line: line}
	if err := json.Unmarshal(raw, &a.text); err != nil {
		return fmt.Errorf("%s is not a string: %w", c.Text.or("text"), err)
	}
	if raw := c.Usage.or("usage").in(row); raw != nil {
		var err error
		if a.usage, err = usageOf(raw); err != nil {
			return fmt.Errorf("%s: %w", c.Usage.or("usage"), err)
		}
	}
	if raw := c.Latency.or("latency").in(row); raw != nil {
		var ms float64
		if err := json.Unmarshal(raw, &ms); err != nil || ms < 0 || ms > 1e12 {
			return fmt.Errorf("%s: want milliseconds", c.Latency.or("latency"))
		}
		a.latency = int64(ms)
	}
	values := map[string]json.RawMessage{}
	for name, path := range c.key() {
		value := path.in(row)
		if value == nil {
			return fmt.Errorf("the row has no %s, which is part of its key", path)
		}
		values[name] = value
	}
	key, err := keyOf(values)
	if err != nil {
		return err
	}
	if other, known := rows[key]; known {
		return fmt.Errorf("it answers the same question as line %d: %s", other.line, text.Cut(key, mostShown))
	}
	rows[key] = a
	return nil
}

// usageOf returns the usage in a row, whose numbers of tokens may have either of their common names.
func usageOf(raw json.RawMessage) (u llm.Usage, err error) {
	var counts struct {
		Input  *int `json:"input_tokens"`
		Prompt *int `json:"prompt_tokens"`
		Output *int `json:"output_tokens"`
		Answer *int `json:"completion_tokens"`
	}
	if err := json.Unmarshal(raw, &counts); err != nil {
		return u, err
	}
	u.InputTokens, u.OutputTokens = cmp.Or(counts.Input, counts.Prompt), cmp.Or(counts.Output, counts.Answer)
	return u, nil
}

// or returns p or, if p is empty, the path of the given column.
func (p Path) or(column string) Path {
	if len(p) == 0 {
		return Path{column}
	}
	return p
}

// String returns the names joined by dots.
func (p Path) String() string { return strings.Join(p, ".") }

// in returns the value at the path in a row, or nil if the value is missing or null.
func (p Path) in(row map[string]json.RawMessage) json.RawMessage {
	for _, name := range p[:len(p)-1] {
		var inner map[string]json.RawMessage
		if json.Unmarshal(row[name], &inner) != nil {
			return nil
		}
		row = inner
	}
	if value := row[p[len(p)-1]]; string(value) != "null" {
		return value
	}
	return nil
}
