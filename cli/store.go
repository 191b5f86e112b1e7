package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// youngest is the word that names the newest run.
const youngest = "last"

// A store is a database of runs.
type store struct {
	stores.Store
	file   string // name of the store as shown to the user
	flag   string // flag for command lines that name the store: "" or " --db FILE"
	secret string // password in its address
}

// newStore opens a store for new runs. If the file does not exist, it is created.
func (a *app) newStore(ctx context.Context, known string) (*store, error) {
	s, err := a.openStore(ctx, known, true, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	a.secrets.Note(s.secret)
	return s, nil
}

// openStore opens the store named by a flag or the environment, or else the project's store. Known is its name if it has already
// been determined. If makeIt is set, a missing file is created; otherwise a missing file is an error.
func (a *app) openStore(ctx context.Context, known string, makeIt bool, opts sqlite.Options) (*store, error) {
	s := &store{file: cmp.Or(known, storeName(a.db))}
	if a.db != "" {
		s.flag = " --db " + quoted(a.db)
	}
	if isSettings(s.file) {
		return nil, errSettings
	}
	if redact.IsDatabase(s.file) {
		if a.linked.postgres == nil {
			return nil, fmt.Errorf("this program does not link PostgreSQL: pass cli.Main the part of package %s (--db or STONE_DB names another database)", postgresPackage)
		}
		full := redact.FullDatabase(s.file, storeEnv, false) // contains the password that the environment provides for this address
		s.file, s.secret = redact.Database(s.file), a.linked.postgres.Secret(full)
		var err error
		if s.Store, err = a.linked.postgres.Open(ctx, full, os.Getenv(listenEnv)); err != nil {
			return nil, fmt.Errorf("%w (--db or STONE_DB names another database)", err)
		}
		return s, nil
	}
	named := s.file != ""
	if !named {
		if err := s.inProject(makeIt); err != nil {
			return nil, err
		}
	}
	_, missing := os.Stat(s.file)
	if errors.Is(missing, fs.ErrNotExist) && !makeIt {
		return nil, noDatabase{s.file}
	}
	if !named {
		if err := a.believes(s.file); err != nil {
			return nil, fmt.Errorf("%w (--db names another database)", err)
		}
	}
	db, err := sqlite.Open(s.file, opts)
	if err != nil {
		return nil, fmt.Errorf("%w (--db names another database)", err)
	}
	if !named && missing != nil {
		a.made(s.file)
	}
	s.Store = db
	return s, nil
}

// noDatabase is the error of a command that needs an existing database if the database does not exist.
type noDatabase struct{ file string }

// Is reports whether target is fs.ErrNotExist, so that the error matches it.
func (noDatabase) Is(err error) bool { return err == fs.ErrNotExist }

func (e noDatabase) Error() string {
	return fmt.Sprintf("database %s does not exist: the command run creates it, and --db names another", e.file)
}

// inProject sets the store to the project's file, which is in the nearest .stone directory or, if there is none, in a .stone
// directory in the working directory.
func (s *store) inProject(makeIt bool) error {
	dir, err := config.Find(".")
	if err != nil {
		return fmt.Errorf("%w (--db keeps runs in another place)", err)
	}
	s.file = kinds.Shown(filepath.Join(cmp.Or(dir, config.Name), runsFile))
	if _, err := os.Stat(s.file); !makeIt || !errors.Is(err, fs.ErrNotExist) {
		return nil // opening the file reports other problems
	}
	if err := makeProject(filepath.Dir(s.file)); err != nil {
		return fmt.Errorf("runs cannot be kept: %w: --db keeps them in another place, --no-db keeps none", err)
	}
	return nil
}

// makeProject creates the directory of a database and its .gitignore, unless they exist.
func makeProject(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(ignored)
	return errors.Join(err, f.Close())
}

// overStore makes a command call do with an existing store when it is executed.
func (a *app) overStore(c *cobra.Command, do func(ctx context.Context, s *store, args []string) error) {
	a.dbFlag(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.withStore(c.Context(), func(s *store) error { return do(c.Context(), s, args) })
	}
}

// withStore calls do with an existing store.
func (a *app) withStore(ctx context.Context, do func(*store) error) error {
	return a.withStoreAs(ctx, "", sqlite.Options{}, do)
}

// withStoreAs is like withStore, but with options for opening a database file.
func (a *app) withStoreAs(ctx context.Context, known string, opts sqlite.Options, do func(*store) error) error {
	s, err := a.openStore(ctx, known, false, opts)
	if err != nil {
		return err
	}
	err = do(s)
	switch closed := s.Close(); {
	case closed == nil || err != nil && strings.Contains(err.Error(), closed.Error()): // err already reports it
		return err
	case err == nil:
		return failed("%w", closed)
	default:
		return failed("%w; %w", err, closed)
	}
}

// find returns the run that name selects. The name is an id, a unique prefix of an id, or "last".
func (s *store) find(ctx context.Context, name string) (journal.RunInfo, error) {
	if name == youngest {
		runs, err := s.Runs(ctx, journal.Query{Limit: 1})
		if err != nil {
			return journal.RunInfo{}, failed("%w", err)
		}
		if len(runs) == 0 {
			return journal.RunInfo{}, fmt.Errorf("there is no last run: %s has no runs", s.file)
		}
		name = runs[0].ID
	}
	info, err := s.Find(ctx, name)
	switch {
	case errors.Is(err, journal.ErrNoRun):
		return info, s.unknown(ctx, name)
	case errors.As(err, new(*journal.AmbiguousError)):
		return info, err
	case err != nil:
		return info, failed("%w", err)
	}
	return info, nil
}

// Named implements command.Journal.
func (s *store) Named(ctx context.Context, name string) (journal.RunInfo, error) {
	return s.find(ctx, name)
}

// unknown returns the error for a run that does not exist. It suggests the most similar name.
func (s *store) unknown(ctx context.Context, name string) error {
	runs, err := s.Runs(ctx, journal.Query{Limit: 1000})
	if err != nil {
		return failed("%w", err)
	}
	near := suggest.Closest(name, func(yield func(string) bool) {
		for _, r := range runs {
			if !yield(r.ID) {
				return
			}
		}
	})
	if near != "" {
		return fmt.Errorf("no run %q in %s: did you mean %s?", name, s.file, near)
	}
	return fmt.Errorf("no run %q in %s: the command runs lists them", name, s.file)
}

// command returns a command line that a person can type to use the store.
func (a *app) command(s *store, words ...string) string {
	return a.Name + " " + strings.Join(words, " ") + s.flag
}

// quoted returns a word, quoted for use in a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// storeEnv is the environment variable that names the store if --db is not set. Passwords stay in the environment, because all
// users of a machine can see command lines.
const (
	storeEnv  = "STONE_DB"
	listenEnv = "STONE_DB_LISTEN"
	indexEnv  = kinds.IndexEnv
)

// storeFlag is the value of --db or --index. A password in an address is moved to the environment variable, where programs that
// take over the command find it.
type storeFlag struct {
	name     *string
	variable string
}

func (f storeFlag) Type() string   { return "string" }
func (f storeFlag) String() string { return *f.name }

func (f storeFlag) Set(name string) error {
	*f.name = name
	if !redact.IsDatabase(name) {
		return nil
	}
	*f.name = redact.Database(name)
	if redact.HasPassword(name) || *f.name != redact.Database(os.Getenv(f.variable)) {
		return os.Setenv(f.variable, name)
	}
	return nil // the environment may contain the password
}

var errSettings = errors.New("a database of a server is named by an address: postgres://USER@HOST/NAME")

// isSettings reports whether a store is named by PostgreSQL connection settings or by a misspelled address. Such a name is not a
// file, and may contain a password.
func isSettings(name string) bool {
	return !redact.IsDatabase(name) && (strings.Contains(name, "host=") || strings.Contains(name, "dbname=") || strings.Contains(name, "password=") || strings.Contains(name, "://"))
}

// secretless returns the arguments of the command, without the passwords in --db and --index.
func secretless(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		for _, flag := range []string{"--db", "--index"} {
			if value, ok := strings.CutPrefix(arg, flag+"="); ok && redact.IsDatabase(value) {
				args[i] = flag + "=" + redact.Database(value)
			} else if redact.IsDatabase(arg) && i > 0 && args[i-1] == flag {
				args[i] = redact.Database(arg)
			}
		}
	}
	return args
}

// storeName returns the name of the store given by a flag or the environment, or "" if neither is set.
func storeName(flag string) string { return cmp.Or(flag, os.Getenv(storeEnv)) }

func (a *app) backup(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, args []string) error {
		as := sqlite.Options{ReadOnly: true}
		return a.withStoreAs(c.Context(), "", as, func(s *store) error {
			file, ok := s.Store.(interface {
				Backup(ctx context.Context, name string) (int64, error)
			})
			if !ok {
				return errors.New("to copy a PostgreSQL database, use its own program: pg_dump --format=custom --file=FILE")
			}
			size, err := file.Backup(c.Context(), args[0])
			if err != nil {
				return failed("%w", err)
			}
			_, err = fmt.Fprintf(a.Stdout, "copied %s to %s, %s\n", s.file, args[0], megabytes(size))
			return output(err)
		})
	}
	a.dbFlag(c.Flags())
}

// checkReport is the JSON output of db check.
type checkReport struct {
	Database string   `json:"database"`
	Runs     int      `json:"runs"`
	Records  int      `json:"records"`
	Damage   []damage `json:"damage"`
}

type damage struct {
	Run    string `json:"run,omitempty"`
	Path   string `json:"path,omitempty"`
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason"`
}

// mostDamage is the maximum number of damaged places that are printed, because a file may be damaged everywhere.
const mostDamage = 1000

func (a *app) dbCheck(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, _ []string) error {
		at := &store{file: storeName(a.db)}
		info, missing := os.Stat(at.file)
		if missing == nil && info.Mode().IsRegular() && info.Size() == 0 { // opening an empty file would turn it into a database
			return failed("database %s is empty: it has no tables", at.file)
		}
		if at.file == "" && at.inProject(false) == nil {
			_, missing = os.Stat(at.file)
		}
		s, err := a.openStore(c.Context(), "", false, sqlite.Options{ReadOnly: true})
		switch {
		case err != nil && missing == nil: // the file exists but is too damaged to be opened
			return failed("%w", err)
		case err != nil:
			return err
		}
		return errors.Join(a.check(c.Context(), s), s.Close())
	}
	a.dbFlag(c.Flags())
	a.jsonFlag(c.Flags(), "the result as JSON")
}

func (a *app) check(ctx context.Context, s *store) error {
	report := checkReport{Database: s.file, Damage: []damage{}}
	all := 0
	var unsaid error
	var err error
	report.Runs, report.Records, err = s.Check(ctx, func(e *journal.DamageError) {
		if all++; all > mostDamage {
			return
		}
		report.Damage = append(report.Damage, damage{e.Run, e.Path, e.Node, e.Reason})
		if !a.json {
			if _, err := fmt.Fprintln(a.Stdout, text.Line(e.Error())); unsaid == nil {
				unsaid = err
			}
		}
	})
	if err != nil {
		return failed("%w", err)
	}
	switch {
	case a.json:
		err = printJSON(a.Stdout, report)
	case all == 0:
		_, err = fmt.Fprintf(a.Stdout, "%s: %s, %s, no damage\n", s.file, text.Plural(report.Runs, "run"), text.Plural(report.Records, "record"))
	}
	if err = errors.Join(unsaid, err); err != nil {
		return output(err)
	}
	if all > 0 {
		return failed("%s of %s in %s: restore a copy, or remove the damaged runs", text.Plural(all, "damage"), text.Plural(report.Runs, "run"), s.file)
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
