package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/cli/internal/token"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/trust"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// Names of the state files in a project's .stone directory, and of a database's temporary files.
const (
	runsFile   = "stone.db"
	indexFile  = "index.db"
	tokensFile = "tokens.json"
)

var beside = []string{"-wal", "-shm", "-journal"}

// ignored is the content of the .gitignore that is created with a new database, to keep it out of version control.
const ignored = "/" + runsFile + "*\n/" + indexFile + "*\n/" + tokensFile + "*\n/.gitignore\n"

// stateIn adds a state file of the project to f, unless it is missing or was created by Stone for this user.
func (f *found) stateIn(file string) error {
	ask := func(file, why string) error {
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		s, err := trust.Open()
		if err != nil {
			return err
		}
		if ours, err := s.Believed(file); err != nil || ours {
			return err
		}
		f.state = append(f.state, file)
		f.wants = append(f.wants, "its "+filepath.Base(file)+", which was not made here, "+cmp.Or(why, holds(file)))
		return nil
	}
	if err := ask(file, ""); err != nil {
		return err
	}
	for _, end := range beside {
		if why := trust.Foreign(file + end); why != "" {
			if err := ask(file+end, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds describes the contents of a state file on which commands would act.
func holds(file string) string {
	if to, err := os.Readlink(file); err == nil {
		return "is a link to " + to
	}
	var err error
	switch filepath.Base(file) {
	case tokensFile:
		var tokens *token.File
		if tokens, err = token.Open(file); err != nil {
			break
		}
		all, listed := tokens.List()
		if err = listed; err != nil {
			break
		}
		var names []string
		for _, t := range all {
			names = append(names, t.Name+" ("+strings.Join(t.Roles, ", ")+")")
		}
		return "lets holders of tokens use the server: " + strings.Join(names, ", ")
	case runsFile:
		var db *sqlite.DB
		if db, err = sqlite.Open(file, sqlite.Options{ReadOnly: true}); err != nil {
			break
		}
		defer db.Close()
		all, counted := db.Counts(context.Background(), journal.Query{})
		if err = counted; err != nil {
			break
		}
		n := map[journal.State]int{}
		runs := 0
		for _, c := range all {
			runs += c.Runs
			n[c.State] += c.Runs
		}
		going := n[journal.Answered] + n[journal.Drained] + n[journal.Interrupted] + n[journal.Refused]
		return fmt.Sprintf("has %s: %d would continue, %d of them by answers in it, and %d wait", text.Plural(runs, "run"), going, n[journal.Answered], n[journal.Waiting])
	default:
		return "says what searches find"
	}
	return "cannot be read: " + err.Error()
}

// believes asks the user to trust a state file of the project that already exists, and announces a file that will be created.
func (a *app) believes(file string) error {
	dir, err := config.Find(".")
	if err != nil {
		return err
	}
	f := found{dir: cmp.Or(dir, filepath.Dir(file))}
	if err = f.stateIn(file); err == nil || a.trusts() {
		err = a.consent(f)
	}
	if _, missing := os.Lstat(file); err != nil || !errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	s, err := trust.Open()
	if err == nil {
		err = s.Make(file)
	}
	a.unmarked(file, err)
	return nil
}

// made marks a state file as created by this process.
func (a *app) made(file string) {
	s, err := trust.Open()
	if err == nil {
		err = s.Believe(file)
	}
	a.unmarked(file, err)
}

func (a *app) unmarked(file string, err error) {
	if err != nil {
		a.complain("later commands will ask whether %s is yours, unless a flag or a variable names it: %v", file, err)
	}
}

// openTokens opens the file with tokens. Without a name, this is the user's file for the project. It includes the project's own
// tokens if the user trusts them.
func (a *app) openTokens() (*token.File, error) {
	if a.tokens != "" {
		return token.Open(a.tokens)
	}
	const elsewhere = "%w (--tokens keeps tokens in another place)"
	dir, err := config.Find(".")
	if err != nil {
		return nil, fmt.Errorf(elsewhere, err)
	}
	if dir == "" {
		if dir, err = filepath.Abs(config.Name); err != nil {
			return nil, err
		}
	}
	var file string
	s, err := trust.Open()
	if err == nil {
		file, err = s.Callers(filepath.Dir(dir))
	}
	if err != nil {
		return nil, fmt.Errorf(elsewhere, err)
	}
	shipped := filepath.Join(dir, tokensFile)
	_, missing := os.Lstat(shipped)
	_, isNew := os.Stat(file)
	if missing != nil || isNew == nil {
		return token.Open(file)
	}
	f := found{dir: dir}
	if err = f.stateIn(shipped); err == nil {
		err = a.consent(f)
	}
	if err != nil {
		return nil, err
	}
	if len(f.state) > 0 && a.trusts() { // trusted for this command only
		return token.Open(shipped)
	}
	return token.Copy(shipped, file)
}
