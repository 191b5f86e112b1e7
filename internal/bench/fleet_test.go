package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
)

// fleets start durable runs on a PostgreSQL server: work does a number of them at once, each with
// durableSteps steps, one after the other, of 1 KB.
var fleets = append([]fleet{{"stone", stoneFleet}}, peerFleets...)

type fleet struct {
	name string
	open func(address string) (work func(number, runs int) error, done func() error, err error)
}

// BenchmarkFleet is a durable step on a PostgreSQL server with its default durability, from the start
// of a run to its end, with 1, 8 and 32 runs at once in one process. All libraries use one server.
func BenchmarkFleet(b *testing.B) {
	server := pgtest.New(b)
	for _, runs := range []int{1, 8, 32} {
		for _, who := range fleets {
			b.Run(fmt.Sprintf("%d/%s", runs, who.name), func(b *testing.B) {
				address := server.Database(b)
				work, done, err := who.open(address)
				if err != nil {
					b.Fatal(err)
				}
				const each = 32 // runs in a round
				number := 0
				round := func() (err error) {
					for last := number + each/runs; number < last && err == nil; number++ {
						err = work(number, runs)
					}
					return err
				}
				if err := round(); err != nil { // connections and plans
					b.Fatal(err)
				}
				served := watch(b, server, address)
				first := number
				measure(b, each*durableSteps, "step", round)
				served.report(b, "step", (number-first)*runs*durableSteps)
				if err := done(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// stoneFleet has a run for each line of steps.
func stoneFleet(address string) (func(number, runs int) error, func() error, error) {
	db, err := postgres.Open(context.Background(), address, postgres.Options{})
	if err != nil {
		return nil, nil, err
	}
	doc := dag.NewType[kilo]("doc")
	line := stoneLine(stepNames(durableSteps), doc, doc, aKilo.next(), func(_ context.Context, v kilo) (kilo, error) { return v.next(), nil })
	work := func(number, runs int) error {
		return together(runs, func(i int) error {
			res, err := stone.Run(context.Background(), line, stone.Config{RunID: fmt.Sprintf("run-%d-%d", number, i), Recorder: journal.Keep(db, journal.Options{})})
			if err != nil {
				return err
			}
			v, err := doc.Of(res.Node)
			if err == nil && v.N != durableSteps {
				err = fmt.Errorf("%d of %d steps ran", v.N, durableSteps)
			}
			return err
		})
	}
	return work, db.Close, nil
}

// together calls do n times at once.
func together(n int, do func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- do(i) }()
	}
	var err error
	for range n {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}

// served is what a server has done for a database since watch.
type served struct {
	server  *pgtest.Server
	conn    *pgx.Conn
	started time.Time
	cpu     time.Duration
	before  map[string]float64
	stop    func()

	// Until stop returns they belong to the sampler.
	samples float64
	waits   map[string]float64
}

const counters = `SELECT xact_commit::float8, wal_bytes::float8, wal_sync::float8 FROM pg_stat_wal, pg_stat_database WHERE datname = current_database()`

// watch reads the counters of the server, and from then on what the database's backends wait for.
func watch(b *testing.B, server *pgtest.Server, address string) *served {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	s := &served{server: server, conn: conn, waits: map[string]float64{}}
	s.before = s.read(b)
	ctx, cancel := context.WithCancel(context.Background())
	var sampler sync.WaitGroup
	sampler.Go(func() { s.sample(ctx, address) })
	s.stop = func() { cancel(); sampler.Wait() }
	s.cpu, s.started = server.CPU(), time.Now()
	return s
}

func (s *served) read(b *testing.B) map[string]float64 {
	b.Helper()
	// A backend reports its counters at most once a second, the writer of the log its own a little later.
	time.Sleep(1500 * time.Millisecond)
	var commits, bytes, syncs float64
	if err := s.conn.QueryRow(context.Background(), counters).Scan(&commits, &bytes, &syncs); err != nil {
		b.Fatal(err)
	}
	return map[string]float64{"commits": commits, "wal-B": bytes, "syncs": syncs}
}

// sample counts what the backends wait for while they have a statement.
func (s *served) sample(ctx context.Context, address string) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return
	}
	defer conn.Close(context.Background())
	for ctx.Err() == nil {
		rows, err := conn.Query(ctx, `SELECT CASE WHEN state = 'idle in transaction' THEN 'its process' ELSE coalesce(wait_event_type || ':' || wait_event, 'CPU') END
			FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`)
		if err != nil {
			return
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return
		}
		s.samples++
		for _, wait := range found {
			s.waits[wait]++
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// report reports what the server has done for each of n units, and logs what its backends did on
// average.
func (s *served) report(b *testing.B, unit string, n int) {
	b.Helper()
	elapsed, cpu := time.Since(s.started), s.server.CPU()-s.cpu
	s.stop()
	after := s.read(b)
	b.ReportMetric(float64(n)/elapsed.Seconds(), "per-second")
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(n), "server-cpu-ns/"+unit)
	for name, value := range after {
		b.ReportMetric((value-s.before[name])/float64(n), name+"/"+unit)
	}
	names := slices.SortedFunc(maps.Keys(s.waits), func(a, b string) int { return int(s.waits[b] - s.waits[a]) })
	var text []string
	for _, name := range names[:min(5, len(names))] {
		text = append(text, name+" "+strconv.FormatFloat(s.waits[name]/s.samples, 'f', 2, 64))
	}
	b.Logf("backends at work on average: %s", strings.Join(text, ", "))
	_ = s.conn.Close(context.Background())
}
