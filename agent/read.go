package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/llm"
)

const (
	readName    = "read_result"
	readDefault = 16 << 10 // bytes of a kept result that are read
	readMost    = 64 << 10
	maxFound    = 50  // maximum matches per search
	around      = 100 // the number of bytes shown before and after a match
)

func (r *run) reads() Tool {
	return Tool{
		Tool: llm.Tool{Name: readName, Description: "Reads a part of a long tool result, or searches it.", Schema: json.RawMessage(readSchema)},
		Run: func(_ context.Context, input json.RawMessage) (Result, error) {
			var in reading
			if err := json.Unmarshal(input, &in); err != nil {
				return Result{}, err
			}
			text, err := r.find(in.Handle)
			if err != nil {
				return Result{}, err
			}
			out, err := in.of(text)
			return Result{Text: out}, err
		},
		Parallel:  true,
		Effects:   []string{}, // the conversation already has the marks of the results
		MaxResult: -1,         // the tool has its own limits
	}
}

// readSchema is the schema of the arguments of read_result.
var readSchema = fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["handle"],"properties":{
"handle":{"type":"string","description":"the handle at the end of the cut result"},
"offset":{"type":"integer","minimum":0,"description":"the byte at which to start, counted from 0"},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"how many bytes to read; %d if left out"},
"search":{"type":"string","minLength":1,"maxLength":1000,"description":"finds this text from the offset on, and returns each place with its offset"}}}`, readMost, readDefault)

type reading struct {
	Handle        string
	Offset, Limit int
	Search        string
}

// of returns the part of text that the model has requested.
func (in reading) of(text string) (string, error) {
	if in.Offset >= len(text) {
		return "", fmt.Errorf("the result has only %d bytes: offset %d is after its end", len(text), in.Offset)
	}
	from := begin(text, in.Offset)
	if in.Search != "" {
		return found(text, from, in.Search)
	}
	limit := in.Limit
	if limit == 0 {
		limit = readDefault
	}
	to := begin(text, min(from+limit, len(text)))
	if to == from { // the limit is shorter than the next character
		_, size := utf8.DecodeRuneInString(text[from:])
		to = from + size
	}
	end := "this is the end"
	if to < len(text) {
		end = fmt.Sprintf("read on with offset %d", to)
	}
	return fmt.Sprintf("%s\n[bytes %d to %d of %d; %s]", text[from:to], from, to, len(text), end), nil
}

// found returns a list of the places at which word occurs in text, starting at from, with the surrounding text.
func found(text string, from int, word string) (string, error) {
	var b strings.Builder
	for n := 0; ; n++ {
		i := strings.Index(text[from:], word)
		switch {
		case i < 0 && n == 0:
			return "", errors.New("the text does not occur in the result from the offset on")
		case i < 0:
			return b.String(), nil
		case n == maxFound:
			fmt.Fprintf(&b, "[there are more: search on with offset %d]", from+i)
			return b.String(), nil
		}
		at := from + i
		from = at + len(word)
		start, end := begin(text, max(0, at-around)), begin(text, min(len(text), from+around))
		if line := strings.LastIndexByte(text[start:at], '\n'); line >= 0 {
			start += line + 1
		}
		if line := strings.IndexByte(text[from:end], '\n'); line >= 0 {
			end = from + line
		}
		fmt.Fprintf(&b, "offset %d: %s\n", at, text[start:end])
	}
}

// begin returns the index at which the character that contains index at begins.
func begin(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
