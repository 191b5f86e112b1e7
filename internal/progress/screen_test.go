package progress

import (
	"fmt"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/text"
)

// A screen is a terminal, as far as a Display uses one. Lines that scroll off its
// top are dropped.
type screen struct {
	mu             sync.Mutex
	columns, lines int
	rows           []string // of the screen, from the top
	row            int      // of the cursor
	wrong          []string // what it does not understand
}

func (s *screen) size() (columns, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns, s.lines
}

// resize makes the screen smaller and wraps its lines again.
func (s *screen) resize(columns, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.columns, s.lines = columns, lines
	var rows []string
	for i, row := range s.rows {
		if i == s.row {
			s.row = len(rows)
		}
		for text.Width(row) > columns {
			head := strings.TrimSuffix(text.Cut(row, columns+1), "…")
			rows, row = append(rows, head), strings.TrimPrefix(row, head)
		}
		rows = append(rows, row)
	}
	if s.row == len(s.rows) {
		s.row = len(rows)
	}
	s.rows = rows
	s.scroll()
}

func (s *screen) scroll() {
	for s.row >= s.lines {
		s.rows, s.row = s.rows[1:], s.row-1
	}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := string(b); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			end := strings.IndexAny(rest, "AmKJ")
			if end < 0 {
				s.wrong = append(s.wrong, rest)
				return len(b), nil
			}
			s.control(rest[2:end], rest[end])
			rest = rest[end+1:]
		case rest[0] == '\n':
			s.put("")
			s.row++
			s.scroll()
			rest = rest[1:]
		case rest[0] == '\r':
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, "\r\n\x1b")
			if end < 0 {
				end = len(rest)
			}
			s.put(rest[:end])
			rest = rest[end:]
		}
	}
	return len(b), nil
}

// put writes at the cursor, which is at the end of its line.
func (s *screen) put(part string) {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, "")
	}
	s.rows[s.row] += part
	if text.Width(s.rows[s.row]) >= s.columns {
		s.wrong = append(s.wrong, fmt.Sprintf("a line of %d columns", text.Width(s.rows[s.row])))
	}
}

func (s *screen) control(arg string, what byte) {
	switch what {
	case 'A':
		n := 0
		fmt.Sscan(arg, &n)
		s.row = max(0, s.row-n)
	case 'J':
		s.rows = s.rows[:min(s.row, len(s.rows))]
	}
}

// String returns what the screen shows.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(append(s.rows, s.wrong...), "\n")
}
