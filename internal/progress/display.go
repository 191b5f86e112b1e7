package progress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// Config sets where and how progress is shown. Out is required.
type Config struct {
	Out   io.Writer
	Size  func() (columns, lines int) // returns the size of the terminal; if nil, plain lines are written
	Color bool
	Now   func() time.Time // nil means time.Now
}

// A Display shows the progress of one run. It is an event.Watcher and is safe for concurrent use. Close it when the run has ended.
type Display struct {
	cfg  Config
	tree *Tree

	money  sync.Mutex // protects ledger and usd
	ledger Ledger
	usd    float64 // spending of the run so far

	out    sync.Mutex // protects the screen; must be locked before the tree's lock
	drawn  []int      // widths of the lines on the screen
	paused int
	stop   chan struct{}
	done   sync.WaitGroup
}

// redraw is the interval at which the picture is redrawn.
const redraw = 100 * time.Millisecond

// New starts a Display for a run of p.
func New(p stone.Ashlar, cfg Config) *Display {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Display{cfg: cfg, tree: NewTree(p), stop: make(chan struct{})}
	if cfg.Size != nil {
		d.done.Go(d.animate)
	} else {
		d.done.Go(d.remind)
	}
	return d
}

// remind writes a line about each slow step, because the step may not end for a long time.
func (d *Display) remind() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := d.cfg.Now()
			for _, line := range d.tree.slow(now) {
				d.say(now, line)
			}
		case <-d.stop:
			return
		}
	}
}

// say writes a line to a plain log.
func (d *Display) say(at time.Time, line string) {
	d.out.Lock()
	defer d.out.Unlock()
	d.write([]byte(at.Local().Format(time.TimeOnly) + " " + line + "\n"))
}

// slow returns a line for each leaf that is not in a lane and has been running for a long time. It reports each visit only once.
func (t *Tree) slow(now time.Time) (lines []string) {
	const long = 5 * time.Second
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows {
		if r.running > 0 && !r.inLane && r.form() == "leaf" && r.visits <= maxLines && now.Sub(r.began) >= long && !r.said.Equal(r.began) {
			r.said = r.began
			lines = append(lines, plain("running", r.path(), Duration(now.Sub(r.began))))
		}
	}
	slices.Sort(lines)
	return lines
}

func (d *Display) animate() {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.out.Lock()
			d.draw()
			d.out.Unlock()
		case <-d.stop:
			return
		}
	}
}

// Close draws the final picture and leaves it on the screen.
func (d *Display) Close() {
	close(d.stop)
	d.done.Wait()
	d.out.Lock()
	defer d.out.Unlock()
	d.draw()
	d.drawn = nil
}

// Pause erases the picture until Resume is called, so that other code can write to the terminal. Each call of Pause must be
// followed by a call of Resume.
func (d *Display) Pause() {
	d.out.Lock()
	defer d.out.Unlock()
	var frame bytes.Buffer
	d.erase(&frame)
	d.write(frame.Bytes())
	d.paused++
}

// Resume draws the picture again.
func (d *Display) Resume() {
	d.out.Lock()
	defer d.out.Unlock()
	d.paused--
	d.draw()
}

// Println writes a line above the picture.
func (d *Display) Println(line string) {
	d.Pause()
	d.out.Lock()
	if line = text.Line(line) + "\n"; d.paused > 1 {
		line = "\n" + line // another writer has not finished its line
	}
	d.write([]byte(line))
	d.out.Unlock()
	d.Resume()
}

// write ignores errors, because a run must not fail if its progress cannot be displayed.
func (d *Display) write(b []byte) {
	if len(b) > 0 {
		_, _ = d.cfg.Out.Write(b)
	}
}

// Wants implements event.Watcher. The display wants all events except pieces of text.
func (d *Display) Wants(_ context.Context, level slog.Level) bool { return level > event.LevelDelta }

// Watch implements event.Watcher.
func (d *Display) Watch(_ context.Context, e event.Event) {
	d.money.Lock()
	d.usd += d.ledger.Note(e).USD
	d.money.Unlock()
	if line := d.tree.Note(e); line != "" && d.cfg.Size == nil {
		if _, lanes := e.Data.(event.LaneEnded); lanes || address.Parent(e.Path) == "" {
			line += d.spent("; ")
		}
		d.say(e.Time, line)
	}
}

// spent returns the cost of the run, preceded by a separator, or "" if there is no cost.
func (d *Display) spent(before string) string {
	d.money.Lock()
	defer d.money.Unlock()
	if d.usd == 0 {
		return ""
	}
	return before + "$" + money.USD(d.usd, false)
}

// Shown returns a path in which lane numbers are replaced by lane labels, where these are known.
func (d *Display) Shown(path string) string {
	d.tree.mu.Lock()
	defer d.tree.mu.Unlock()
	return d.tree.shown(path)
}

// Note applies an event to the tree. It returns the event's line in a plain log, or "" if it has none.
func (t *Tree) Note(e event.Event) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch d := e.Data.(type) {
	case event.StepStarted:
		r := t.find(e.Path)
		t.reach(r)
		r.start(e.Time)
	case event.StepDone:
		return t.find(e.Path).end(d, t.waits)
	case event.AgentStarted:
		t.find(e.Path).agent = true
	case event.ModelResponse:
		if a := t.agentOf(e.Path); d.Turn > 0 && !d.Replayed && a.talks() {
			return plain("turn", a.path(), fmt.Sprint(d.Turn), calls(d))
		}
	case event.ToolDone:
		if a := t.agentOf(e.Path); !d.OK && a.talks() {
			return plain("failed", a.path(), d.Tool)
		}
	case event.LaneStarted:
		r := t.find(e.Path)
		r.lanes = max(r.lanes, d.Lanes)
		if !r.inLane && d.Label != "" {
			at, _ := slices.BinarySearchFunc(r.active, d.Lane, func(l lane, n int) int { return l.index - n })
			r.active = slices.Insert(r.active, at, lane{d.Lane, text.Line(d.Label)})
		}
	case event.LaneEnded:
		return t.find(e.Path).laneEnd(d, e.Time)
	case event.StepFailed:
		t.waits = t.waits || d.Kind == string(kind.Waiting)
		return t.find(e.Path).failure(t.shown(e.Path), d)
	}
	return ""
}

// maxAbout is the maximum width of a tool's arguments, in columns.
const maxAbout = 60

// maxTurns is the maximum number of lines about one visit to an agent.
const maxTurns = 30

// maxLines limits the lines of the same kind per place. Without a limit, loops and lanes could produce thousands of lines.
const maxLines = 10

func (r *row) start(at time.Time) {
	if r.running == 0 && r.fans() {
		r.lanes, r.ended, r.lost, r.worked, r.active = 0, 0, 0, 0, nil
		if r.form() == "parallel" {
			r.lanes = len(r.below)
		}
	}
	r.round, r.turns = 0, 0
	r.visits++
	r.running++
	r.began = at
}

// agentOf returns the row of the agent to which the turn or tool with the path belongs, or nil. It does not create rows for turns
// and tools.
func (t *Tree) agentOf(path string) *row {
	r, first := t.root, true
	for segment := range address.Segments(path) {
		if s := address.Parse(segment); !first {
			next := t.rows[place{r, s.Name, s.Occurrence}]
			if next == nil {
				break
			}
			r = next
		}
		first = false
	}
	return r.agentAt()
}

// agentAt returns r or the closest row above it that belongs to an agent, or nil if there is none.
func (r *row) agentAt() *row {
	for ; r != nil; r = r.up {
		if r.agent {
			return r
		}
	}
	return nil
}

// talks reports whether lines are written for an agent's actions: only for the first turns of the first visits, and only outside
// lanes.
func (r *row) talks() bool {
	if r == nil || r.inLane || r.visits > maxLines {
		return false
	}
	r.turns++
	return r.turns <= maxTurns
}

// calls describes the tool calls in a model's turn. Because logs are kept, it includes only the file, command or URL of a call,
// and none of the model's text.
func calls(d event.ModelResponse) string {
	if d.Reply == nil {
		return "no answer"
	}
	var asked []llm.ToolCall
	if data, err := json.Marshal(d.Reply.ToolCalls); err == nil {
		_ = json.Unmarshal(data, &asked) // cannot fail: an event's contents are written by encoding/json
	}
	var did []string
	for _, c := range asked {
		var on struct{ Path, File, Command, URL string }
		_ = json.Unmarshal(c.Input, &on) // the tool may have other arguments
		about := cmp.Or(on.Path, on.File, on.Command, on.URL)
		did = append(did, strings.TrimSpace(c.Name+" "+text.Cut(text.Line(strings.TrimSpace(about)), maxAbout)))
	}
	if len(did) == 0 {
		did = []string{"answers"}
	}
	return strings.Join(did, ", ")
}

func (r *row) end(e event.StepDone, waits bool) string {
	r.running = max(0, r.running-1)
	r.ok, r.waits, r.spent, r.replayed = e.OK, waits && !e.OK, e.Elapsed, e.Replayed
	verb := "done"
	if !e.OK {
		r.failed++
		verb = "failed"
		if waits { // the places around a waiting question also end
			verb = "waits"
		}
	}
	if !r.listed() || e.OK && !r.works() {
		return ""
	}
	return r.line(verb, r.counts(), r.duration(), text.Line(e.Result))
}

// works reports whether a line is written when a visit has ended successfully: for leaves, and for forms that count rounds or
// lanes, but not for other containers.
func (r *row) works() bool {
	return r.up == nil || r.ashlar.IsZero() || r.fans() || slices.Contains([]string{"leaf", "loop"}, r.form())
}

// duration returns the duration of the last visit, or "replayed" if an earlier process
// recorded its result.
func (r *row) duration() string {
	if r.replayed {
		return "replayed"
	}
	return Duration(r.spent)
}

// listed reports whether lines are written for a visit: for the first maxLines visits, and only outside lanes and agents.
func (r *row) listed() bool { return !r.inLane && r.visits <= maxLines && r.up.agentAt() == nil }

// line returns the log line for a visit.
func (r *row) line(verb string, details ...string) string {
	if !r.listed() {
		return ""
	}
	if r.visits == maxLines {
		details = append(details, "further visits are not listed")
	}
	return plain(verb, r.path(), details...)
}

// laneNews is the minimum interval between two plain lines about the same fan-out.
const laneNews = 5 * time.Second

// namedLanes is the maximum number of running lanes that are shown by label.
const namedLanes = 3

// names returns the labels of the first few running lanes, and the number of the others.
func (r *row) names() string {
	var names []string
	for _, l := range r.active[:min(len(r.active), namedLanes)] {
		names = append(names, l.label)
	}
	if more := len(r.active) - namedLanes; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (r *row) laneEnd(e event.LaneEnded, at time.Time) string {
	r.ended++
	if !e.OK {
		r.lost++
	}
	r.active = slices.DeleteFunc(r.active, func(l lane) bool {
		if l.index == e.Lane && !e.OK && len(r.broken) < maxBroken {
			r.broken = append(r.broken, l)
		}
		return l.index == e.Lane
	})
	if e.Elapsed >= replayed {
		r.worked++
	}
	if r.said.IsZero() {
		r.said = at
	}
	if r.inLane || at.Sub(r.said) < laneNews {
		return ""
	}
	r.said = at
	running := r.names()
	if running != "" {
		running = "running: " + running
	}
	return plain("lanes", r.path(), r.counts(), Duration(at.Sub(r.began)), r.left(at), running)
}

// maxBroken is the maximum number of failed lanes in a fan-out whose labels are kept.
const maxBroken = 1000

// replayed is the maximum duration of a lane whose results are already recorded.
const replayed = 5 * time.Millisecond

// left formats the rate of a map in lanes per second and the estimated remaining time. It returns "" if the time is unknown or
// short.
func (r *row) left(now time.Time) string {
	if r.form() != "map" || r.running == 0 || r.worked == 0 || r.ended >= r.lanes {
		return ""
	}
	each := now.Sub(r.began) / time.Duration(r.worked)
	d := each * time.Duration(r.lanes-r.ended)
	if d < time.Second {
		return ""
	}
	rate := ""
	if each < time.Second {
		rate = fmt.Sprintf("%.1f/s, ", float64(time.Second)/float64(max(each, 1)))
	}
	return rate + "about " + Duration(d) + " left"
}

func (r *row) failure(path string, e event.StepFailed) string {
	r.kind = e.Kind
	if r.failures++; r.failures > maxLines {
		return ""
	}
	details := []string{e.Kind + ": " + e.Reason}
	if r.failures == maxLines {
		details = append(details, "further failures here are only counted")
	}
	verb := "failure"
	if r.up.agentAt() != nil { // the agent continues with another turn
		verb = "rejects"
	}
	if e.Kind == string(kind.Waiting) {
		verb = "waits"
	}
	return plain(verb, path, details...)
}

func plain(verb, path string, details ...string) string {
	details = slices.DeleteFunc(details, func(s string) bool { return s == "" })
	return text.Line(fmt.Sprintf("%-7s %s  %s", verb, text.Line(path), strings.Join(details, "; ")))
}
