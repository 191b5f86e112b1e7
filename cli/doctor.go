package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/sandbox"
)

// Possible states of a diagnosis.
const (
	good  = "ok"
	note  = "note" // worth knowing, but not a problem
	wrong = "wrong"
)

// A diagnosis is one result of the command doctor, which prints it as a line.
type diagnosis struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Value string `json:"value"`
	Next  string `json:"next,omitempty"` // what the user should do; empty if no action is needed
}

func (a *app) doctor(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, _ []string) error {
		defer a.closeCalls()
		all := []diagnosis{{Name: "program", State: good, Value: version()}, sandboxed()}
		kept, written := a.database(c.Context())
		all = append(all, kept, clock(time.Now(), written), filesLimit(openFiles()), memoryLimit())
		all = append(all, a.configuration()...)
		all = append(append(append(all, providerKeys()), a.servers(c.Context())...), crashed())
		bad := 0
		for i := range all {
			d := &all[i]
			d.Value, d.Next = text.Line(a.secrets.Clean(d.Value)), text.Line(a.secrets.Clean(d.Next))
			if d.State == wrong {
				bad++
			}
		}
		marks := map[string]string{good: "✓", note: "○", wrong: "✗"}
		rows := newTable("", "")
		for _, d := range all {
			if rows.add(marks[d.State]+" "+d.Name, d.Value); d.Next != "" {
				rows.add("", "→ "+d.Next)
			}
		}
		err := a.print(all, rows, a.columns())
		if err == nil && bad > 0 {
			return &exitError{code: Failed}
		}
		return err
	}
	a.dbFlag(c.Flags())
	a.jsonFlag(c.Flags(), "a JSON array")
	a.configFlag(c.Flags())
}

func sandboxed() diagnosis {
	d := diagnosis{Name: "sandbox", State: good, Value: strings.TrimPrefix(confinement(), "sandbox ")}
	if _, err := sandbox.Find(); err != nil {
		d.State, d.Next = note, "commands with a scope need Linux: run Stone in a container or a virtual machine with Linux"
		if runtime.GOOS == "linux" {
			d.State, d.Next = wrong, "install bubblewrap, or allow it user namespaces"
		}
	}
	return d
}

// database checks the database of runs. It returns the time of the database's last change, or the zero time if unknown.
func (a *app) database(ctx context.Context) (d diagnosis, written time.Time) {
	d = diagnosis{Name: "database", State: wrong}
	s := &store{file: storeName(a.db)}
	if isSettings(s.file) { // the name may contain a password
		return diagnosis{d.Name, wrong, errSettings.Error(), "set " + storeEnv + " or --db to such an address"}, written
	}
	if s.file == "" {
		if err := s.inProject(false); err != nil {
			return diagnosis{d.Name, wrong, err.Error(), "go to the folder of a project, or name a database with --db"}, written
		}
	}
	size := ""
	if !redact.IsDatabase(s.file) {
		info, err := os.Stat(s.file)
		if errors.Is(err, fs.ErrNotExist) {
			return diagnosis{"database", note, s.file + " does not exist", "the first run makes it"}, written
		}
		if err == nil {
			size, written = ", "+megabytes(info.Size()), info.ModTime()
		}
		if log, failed := os.Stat(s.file + "-wal"); err == nil && info.Size() == 0 && (failed != nil || log.Size() == 0) {
			return diagnosis{d.Name, wrong, s.file + " is empty: it has no tables", "restore a copy, or remove it: the first run makes a new one"}, written
		} else if failed == nil && log.Size() > 0 {
			size += " and a log of " + megabytes(log.Size())
		}
	}
	var f found
	if err := f.stateIn(s.file); storeName(a.db) == "" && (err != nil || len(f.state) > 0) && !a.trusts() {
		d.Value = s.file + " is not trusted: "
		if d.Next = a.Name + " trust shows what it has and trusts it"; err != nil {
			d.Value += err.Error()
		} else {
			d.Value += f.does()
		}
		return d, written
	}
	const stopped = "until then no run can start or continue"
	opened, err := a.openStore(ctx, "", false, sqlite.Options{})
	if err != nil {
		d.Value, d.Next = err.Error(), "restore a copy, or name another database with --db"
		if redact.IsDatabase(s.file) || errors.Is(err, journal.ErrUnavailable) { // the error already says what to do
			d.Next = stopped
		}
		return d, written
	}
	defer opened.Close()
	runs, err := opened.Runs(ctx, journal.Query{Limit: 1000})
	schema, failed := opened.Probe(ctx)
	if err = cmp.Or(err, failed); err != nil {
		d.Value, d.Next = err.Error(), stopped
		return d, written
	}
	count := text.Plural(len(runs), "run")
	if len(runs) == 1000 {
		count = "1,000 or more runs"
	}
	d.State, d.Value = good, fmt.Sprintf("%s%s, schema %d, %s, can be written", opened.file, size, schema, count)
	return d, written
}

// clock compares the system time with the newest recorded time and with the year in which this program was made.
func clock(now, written time.Time) diagnosis {
	d := diagnosis{Name: "clock", State: good, Value: now.Format(time.RFC3339)}
	switch {
	case now.Year() < 2026:
		d.State, d.Value = wrong, d.Value+" is before this program was made"
	case written.After(now.Add(time.Minute)):
		d.State, d.Value = wrong, d.Value+" is before the database was last written, "+written.Format(time.RFC3339)
	}
	if d.State == wrong {
		d.Next = "set the clock: certificates, days of budgets and times of runs depend on it"
	}
	return d
}

func filesLimit(open uint64) diagnosis {
	const few = 1024
	d := diagnosis{Name: "open files", State: good, Value: "no limit known"}
	if open > 0 {
		d.Value = "at most " + strconv.FormatUint(open, 10)
	}
	if open > 1<<40 {
		d.Value = "no limit"
	}
	if open > 0 && open < few {
		d.State, d.Next = note, "raise the limit for servers and large fan-outs: ulimit -n 65536"
	}
	return d
}

// memoryLimit reports, as a diagnosis, how many processors and how much memory this process may use.
func memoryLimit() diagnosis {
	d := diagnosis{Name: "processors", State: good, Value: fmt.Sprintf("%d of %d, memory: ", runtime.GOMAXPROCS(0), runtime.NumCPU())}
	group, err := os.ReadFile("/sys/fs/cgroup/memory.max") // limit of a container; the file does not exist elsewhere
	bytes, numberless := strconv.ParseInt(strings.TrimSpace(string(group)), 10, 64)
	limit := debug.SetMemoryLimit(-1)
	switch {
	case limit < math.MaxInt64:
		d.Value += "GOMEMLIMIT " + megabytes(limit)
	case err == nil && numberless == nil:
		d.State, d.Value = note, d.Value+"the container has "+megabytes(bytes)+", Go knows no limit"
		d.Next = fmt.Sprintf("set GOMEMLIMIT=%dMiB, nine tenths of it, so that memory is freed before the container is killed", bytes*9/10>>20)
	default:
		d.Value += "no limit"
	}
	return d
}

// configuration checks the configuration and whether it is trusted.
func (a *app) configuration() []diagnosis {
	conf, err := a.configured()
	if err != nil {
		return []diagnosis{{"configuration", wrong, err.Error(), a.Name + " config check prints every fault"}}
	}
	if conf.File == "" {
		return []diagnosis{{"configuration", note, "none in this directory or above it", a.Name + " init makes one, where calls and plans need it"}}
	}
	all := []diagnosis{{"configuration", good, fmt.Sprintf("%s: %s, %s", conf.File, text.Plural(len(conf.Capabilities), "capability"), text.Plural(len(conf.Tools), "tool")), ""}}
	f, err := a.foundConfig()
	if err != nil {
		return append(all, diagnosis{"trust", wrong, err.Error(), "fix the file in .stone that the error names"})
	}
	if len(f.wants) == 0 {
		return append(all, diagnosis{"trust", good, "nothing needs it", ""})
	}
	if a.trusts() {
		return append(all, diagnosis{"trust", good, "granted by " + trustEnv + " in this environment", ""})
	}
	changed, known, err := f.changed()
	switch {
	case err != nil:
		return append(all, diagnosis{"trust", wrong, err.Error(), "make the user's configuration directory readable"})
	case !known:
		return append(all, diagnosis{"trust", note, "the project is not trusted: its programs and servers are not used", a.Name + " trust shows what they are and trusts them"})
	case len(changed) > 0:
		return append(all, diagnosis{"trust", note, "changed since it was trusted: " + strings.Join(changed, ", "), a.Name + " trust shows what it does now and trusts it"})
	}
	return append(all, diagnosis{"trust", good, "trusted, unchanged", ""})
}

// providerKeys reports which environment variables with providers' keys are set, without their values.
func providerKeys() diagnosis {
	var set, unset []string
	for _, name := range config.KeyEnvs() {
		if os.Getenv(name) != "" {
			set = append(set, name)
		} else {
			unset = append(unset, name)
		}
	}
	if len(set) == 0 {
		return diagnosis{"keys", note, "none of " + strings.Join(unset, ", ") + " is set", "set the key of your provider, or configure a server that needs none"}
	}
	value := strings.Join(set, ", ") + " set"
	if len(unset) > 0 {
		value += "; not set: " + strings.Join(unset, ", ")
	}
	return diagnosis{"keys", good, value, ""}
}

// servers probes the configured capabilities and the default model's server.
func (a *app) servers(ctx context.Context) (found []diagnosis) {
	var all []capability
	if a.calls.conf != nil {
		all = listed(a.calls.conf)
	}
	if s, err := settings(); err == nil && s.URL != "" && trustedSettings() == nil {
		all = append(all, capability{At: s.URL, State: "?", reached: kinds.Reached{ID: "default model", At: s.URL}})
	}
	probe(ctx, all, a.untrusted())
	up := 0
	for _, c := range all {
		switch c.State {
		case "up":
			up++
			continue
		case "?": // the line about trust explains this state
			continue
		}
		found = append(found, diagnosis{c.reached.ID, wrong, "is not available: " + c.Why, "start the server or program, set the key, or change the configuration"})
	}
	if up > 0 {
		found = append(found, diagnosis{"capabilities", good, fmt.Sprintf("%d of %d available", up, len(all)), ""})
	}
	return found
}

func crashed() diagnosis {
	line, at, err := lastCrash()
	file, _ := crashFile()
	switch {
	case err != nil:
		return diagnosis{"last crash", note, "is not known: " + err.Error(), "set HOME or XDG_CACHE_HOME to a folder that can be written"}
	case line == "":
		return diagnosis{"last crash", good, "none", ""}
	}
	return diagnosis{"last crash", note, at.Format(time.RFC3339) + " " + text.Cut(line, 200), "report it with " + file + ", after you have read it: it may have texts of your runs"}
}

// versionFlag adds the --version flag. Cobra's own flag needs a template: linking text/template makes a program keep every
// exported method, which adds megabytes.
func (a *app) versionFlag(root *cobra.Command) {
	wanted := root.Flags().BoolP("version", "v", false, "version for "+a.Name)
	run := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if *wanted {
			_, err := fmt.Fprintln(a.Stdout, version())
			return output(err)
		}
		return run(c, args)
	}
}

// versionCommand prints the version and, with --verbose, how commands are confined.
func (a *app) versionCommand(c *cobra.Command) {

	verbose := c.Flags().Bool("verbose", false, "also print how commands with a scope are confined on this machine")
	c.RunE = func(*cobra.Command, []string) error {
		lines := version()
		if *verbose {
			lines += "\n" + confinement()
		}
		_, err := fmt.Fprintln(a.Stdout, lines)
		return output(err)
	}
}

// confinement returns a description of how commands are confined, and why no stronger method is used.
func confinement() string {
	m, err := sandbox.Find()
	if err != nil {
		return "sandbox " + text.Line(err.Error()) + ": commands with a scope are refused"
	}
	line := "sandbox " + string(m)
	if m != sandbox.Bubblewrap {
		line += fmt.Sprintf(" (bubblewrap: %v)", sandbox.Bubblewrap.Check())
	}
	return text.Line(line)
}

// version returns the version of Stone, as recorded by the build.
func version() string {
	return fmt.Sprintf("stone %s %s %s/%s", cmp.Or(number(), "(unknown version)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// number returns the version number of Stone's module, or "" if the build did not record it.
func number() (version string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/stonelayer/stone" {
				version = m.Version
			}
		}
	}
	return version
}

// isRelease matches versions that "go get" can find.
var isRelease = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)
