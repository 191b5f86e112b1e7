package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/library"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// indexFlags holds the values of the flags of index and search.
type indexFlags struct {
	run     runFlags
	index   string
	words   bool
	rebuild bool
	q       library.Query
	where   []string
}

func (a *app) indexFlags(f *pflag.FlagSet, flags *indexFlags) {
	f.Var(storeFlag{&flags.index, indexEnv}, "index", "use the index in `FILE`, or in a database: postgres://USER@HOST/NAME; overrides STONE_INDEX and .stone/index.db of the project")
	noted(f, namesFile, "index")
	noted(f, makesPipeline, "index")
	f.BoolVar(&flags.words, "words", false, "rank by words only, even if an embedder is configured")
	a.jsonFlag(f, "the result as JSON")
}

func (a *app) index(c *cobra.Command) {
	var flags indexFlags
	want := c.Args
	c.Args = func(c *cobra.Command, args []string) error { // the argument may also come from a resumed run
		return want(c, strings.Fields(cmp.Or(strings.Join(args, " "), flags.run.keep.made.Pipeline)))
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		defer a.closeCalls()
		return a.indexFolder(c, cmp.Or(strings.Join(args, ""), flags.run.keep.made.Pipeline), flags)
	}
	f := c.Flags()
	a.indexFlags(f, &flags)
	f.BoolVar(&flags.rebuild, "rebuild", false, "replace all vectors, for another embedder")
	noted(f, makesPipeline, "words", "rebuild")
	a.quietFlag(f)
	flags.run.wire.describe(f)
	a.accessFlags(f)
	budgetFlags(f, &a.calls.budget)
	a.trustFlag(f)
	a.addKeepFlags(c, &flags.run.keep)
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		flags.run.keep.made.Command, flags.run.keep.name = c.Name(), "index"
		return before(c, args)
	}
}

func (a *app) indexFolder(c *cobra.Command, dir string, flags indexFlags) (err error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("folder %s does not exist", dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a file: name its folder, and find it with search --under", dir)
	}
	ctx, x, err := a.openIndex(c, flags, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	root, err := os.OpenRoot(dir) // links cannot lead out of the folder
	if err != nil {
		return err
	}
	defer root.Close()
	p := x.Pipeline(root.FS())
	a.calls.base.Grant = a.calls.granted(p)
	cfg := a.calls.base
	var report library.Report
	err = a.perform(ctx, p, cfg, a.findings(p, cfg), flags.run, func(result stone.Result, _ *keptRun) (err error) {
		if report, err = x.Report(result); err != nil || report.Text == "" {
			return err
		}
		if a.json {
			return output(printJSON(a.Stdout, report.JSON))
		}
		_, err = fmt.Fprintln(a.Stdout, report.Text)
		return output(err)
	})
	if err != nil || report.Text == "" {
		return err
	}
	for _, line := range report.Skipped {
		a.complain("left out %s", line)
	}
	switch {
	case report.Empty:
		return failed("%s has no documents: it needs files of text, Markdown, HTML or PDF; hidden files are left out", dir)
	case report.Built != "" && report.Bare > 0:
		a.complain("%s without a vector, found by words only: configure the embedder %s and run the command again", text.Plural(report.Bare, "text"), report.Built)
	case report.Bare > 0:
		a.complain("searches match words only: no embedder is configured; add {:search {:embedder {:provider …, :model …}}} to .stone/stone.edn")
	}
	return nil
}

func (a *app) search(c *cobra.Command) {
	var flags indexFlags
	c.RunE = func(c *cobra.Command, args []string) error {
		defer a.closeCalls()
		flags.q.Text = strings.Join(args, " ")
		if conf, err := a.configured(); err == nil && conf.Search.Rerank != "" {
			if err := a.relinked(c); err != nil {
				return err
			}
		}
		return a.searchIndex(c, flags)
	}
	f := c.Flags()
	a.indexFlags(f, &flags)
	f.IntVar(&flags.q.K, "k", 10, "print at most `N` passages, 1 to 100")
	f.StringVar(&flags.q.Under, "under", "", "find only documents below `FOLDER`, or this one document")
	f.StringArrayVar(&flags.where, "where", nil, "find only documents with the metadata `NAME=VALUE`, such as type=markdown; may be repeated")
	a.configFlag(f)
	budgetFlags(f, &a.calls.budget)
	a.trustFlag(f)
}

func (a *app) searchIndex(c *cobra.Command, flags indexFlags) (err error) {
	if flags.q.K < 1 || flags.q.K > 100 {
		return fmt.Errorf("--k %d: want 1 to 100", flags.q.K)
	}
	if flags.q.Where, err = pairs("where", flags.where); err != nil {
		return err
	}
	ctx, x, err := a.openIndex(c, flags, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	flags.q.Words = flags.words
	base := filepath.FromSlash(x.Folder)
	if !filepath.IsAbs(base) {
		base = filepath.Join(a.indexBase(a.indexName(flags)), base)
	}
	flags.q.Under = within(base, flags.q.Under)
	cfg := stone.Config{Grant: a.calls.conf.Unbounded(nil)}
	closed, err := a.countSearch(ctx, flags.words, &cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	answer, err := x.Search(ctx, flags.q, cfg, func(file string) string { return shownPath(filepath.Join(base, filepath.FromSlash(file))) })
	if err != nil {
		return failed("%w%s", err, way(err, false))
	}
	if a.json {
		return output(printJSON(a.Stdout, answer.JSON))
	}
	if len(answer.Hits) == 0 {
		a.complain("nothing was found")
	}
	for i, h := range answer.Hits {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		title := h.Source
		if h.Heading != "" {
			title += " · " + h.Heading
		}
		fmt.Fprintln(a.Stdout, text.Line(title))
		for _, line := range text.Lines(h.Text) {
			if _, err := fmt.Fprintln(a.Stdout, strings.TrimRight("  "+line, " ")); err != nil {
				return output(err)
			}
		}
	}
	switch {
	case !answer.Words && answer.Bare > 0:
		a.complain("%s without a vector, ranked by words only: stone index adds vectors", text.Plural(answer.Bare, "text"))
	case !answer.Words || flags.words:
	case answer.Built == "":
		a.complain("searches match words only: the index has no vectors")
	default:
		a.complain("searches match words only: the index's embedder %s is not configured", answer.Built)
	}
	return nil
}

// countSearch records a search as a run, so that shared budgets count its cost. It does so only if the search may cost money and
// shared budgets are configured.
func (a *app) countSearch(ctx context.Context, words bool, cfg *stone.Config) (closed func() error, err error) {
	conf := &a.calls.conf.Search
	if len(a.rules()) == 0 || conf.Rerank == "" && (words || conf.Embedder == nil) {
		return func() error { return nil }, nil
	}
	s, err := a.newStore(ctx, "")
	if err != nil {
		return nil, err
	}
	cfg.RunID = strings.ToLower(rand.Text()[:10])
	cfg.Recorder = journal.Keep(s.Store, journal.Options{Pipeline: "search", Budgets: budget.Drawn(a.rules(), "search", nil)})
	return s.Close, nil
}

// within returns a path relative to a folder, in the form in which search prints it, if the path exists. Any other path is
// returned unchanged.
func within(base, path string) string {
	abs, err := filepath.Abs(path)
	if _, missing := os.Stat(path); path == "" || err != nil || missing != nil {
		return path
	}
	root, err := filepath.Abs(base)
	if err != nil {
		return path
	}
	switch rel, err := filepath.Rel(root, abs); {
	case err != nil || !filepath.IsLocal(rel):
		return path
	case rel == ".":
		return ""
	default:
		return filepath.ToSlash(rel)
	}
}

// way returns a hint that names the flag with which the given error can be avoided, or "" if there is no such flag.
func way(err error, index bool) string {
	switch kind := fault.Kind(err); {
	case kind == "retrieve/embedder" && index:
		return " with --rebuild"
	case kind == "retrieve/embedder":
		return "; --words searches without vectors"
	case kind == "retrieve/folder":
		return ", with --index FILE"
	}
	return ""
}

// openIndex opens the index named by flags or by the configuration. If a folder is given, a missing index is created.
func (a *app) openIndex(c *cobra.Command, flags indexFlags, dir string) (context.Context, *library.Index, error) {
	conf, err := a.configured()
	if err == nil {
		err = a.consentToConfig()
	}
	if err != nil {
		return nil, nil, err
	}
	ctx, err := a.calls.spending(c.Context(), c.Flags())
	if err != nil {
		return nil, nil, err
	}
	s, name := &conf.Search, a.indexName(flags)
	if isSettings(name) && !redact.IsDatabase(name) {
		return nil, nil, errSettings // the settings may contain a password
	}
	cfg := library.Config{Index: name, Rebuild: flags.rebuild, Make: dir != "", Size: s.Size, Overlap: s.Overlap, Rerank: s.Rerank, Applicator: conf.App}
	if !flags.words {
		cfg.Embedder = s.Embedder
	}
	if flags.rebuild && cfg.Embedder == nil {
		return nil, nil, errors.New("--rebuild creates vectors, but no embedder is configured: add {:search {:embedder {:provider …, :model …}}} to .stone/stone.edn")
	}
	if dir != "" {
		cfg.Folder, err = from(a.indexBase(cfg.Index), dir)
		if err == nil && flags.index == "" && !redact.IsDatabase(cfg.Index) {
			err = makeProject(filepath.Dir(cfg.Index))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	own := conf.Found && flags.index == "" && os.Getenv(indexEnv) == "" && !redact.IsDatabase(name)
	_, missing := os.Stat(name)
	if own && (dir != "" || missing == nil) {
		if err := a.believes(name); err != nil {
			return nil, nil, fmt.Errorf("%w (--index names another index)", err)
		}
	}
	shown := cfg.Index
	cfg.Index = redact.FullDatabase(shown, indexEnv, conf.Found && flags.index == "")
	if u, err := url.Parse(cfg.Index); err == nil {
		if password, ok := u.User.Password(); ok {
			a.secrets.Note(password)
		}
	}
	x, err := a.linked.library.Open(ctx, cfg)
	if errors.Is(err, fs.ErrNotExist) && dir == "" {
		return nil, nil, failed("no index %s: run %s index DIR", shown, a.Name)
	}
	if err != nil {
		return nil, nil, failed("%w%s", err, way(err, dir != ""))
	}
	if own && missing != nil {
		a.made(name)
	}
	return ctx, x, nil
}

// indexName returns the file of the index, or the address of its database without the password.
func (a *app) indexName(flags indexFlags) string {
	name := cmp.Or(flags.index, os.Getenv(indexEnv), a.calls.conf.Search.Index)
	switch {
	case redact.IsDatabase(name):
		return redact.Database(name)
	case a.calls.conf.File != "" || name != a.calls.conf.Search.Index:
		return shownPath(name)
	}
	dir, err := config.Find(".") // without a configuration in the project; configured has already reported errors
	if err != nil || dir == "" {
		dir = config.Name
	}
	return shownPath(filepath.Join(dir, indexFile))
}

// indexBase returns the folder to which the names of an index's documents are relative. For a file, this is the file's folder, so
// that the file and the documents can be moved together; for a database, it is the project's folder.
func (a *app) indexBase(index string) string {
	if redact.IsDatabase(index) {
		return a.calls.conf.Dir
	}
	return filepath.Dir(index)
}

// from returns the path of one folder relative to another.
func from(base, dir string) (string, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(base, dir); err == nil {
		dir = rel
	}
	return filepath.ToSlash(dir), nil
}

// shownPath returns a path relative to the working directory if the result is shorter.
func shownPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, abs); err == nil && len(rel) < len(abs) {
		return rel
	}
	return abs
}
