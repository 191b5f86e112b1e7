//go:build unix

package killtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/internal/test/pgtest"
)

// watchWrites makes the database note who writes: each process is named by its number. A
// process that was stopped may take a free run, and leave it without a change. Every transaction
// that writes to a run changes its lease first or last, so these changes have the same order as the transactions.
const watchWrites = `
CREATE TABLE public.writes (n bigserial, xid bigint DEFAULT pg_current_xact_id()::text::bigint, who text, what text, seq bigint, path text, started text[]);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	lease CONSTANT text[] := '{beat,owner,lease,outside}';
	before jsonb := to_jsonb(OLD); after jsonb := to_jsonb(NEW); what text := TG_OP || ' ' || TG_TABLE_NAME; head jsonb := (after->>'head')::jsonb;
BEGIN
	IF before - lease IS NOT DISTINCT FROM after - lease THEN
		what := 'lease';
	END IF;
	INSERT INTO public.writes (who, what, seq, path, started) VALUES (current_setting('application_name'), what,
		(coalesce(after, before)->>'seq')::bigint, head->>'path', ARRAY(SELECT jsonb_path_query(head, '$.started[*].path') #>> '{}'));
	RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stone.runs FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stone.records FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stone.questions FOR EACH ROW EXECUTE FUNCTION public.note();`

// zombie is what became of processes that were stopped for so long that they lost their run.
type zombie struct {
	answers  int // that had come when the process continued, and had not been acknowledged
	overlaps int // of them, answers to calls that the next holder had begun when they were written
	lost     int // of them, answers to calls that it began later, or that were never written
	rounds   int
}

// stopped is a kind of round: a process is stopped for three leases. When it continues, another
// one holds its run. It writes no intent, node or end, but its answers are kept.
func stopped() *kind {
	var mu sync.Mutex
	var sum zombie
	return &kind{
		name: "Postgres, holder stopped beyond its lease", rounds: 40,
		round: func(v *victim, want func(int) trace) {
			z := v.stop(want(50))
			if v.faults++; z.lost > 0 {
				v.gone += z.lost
				v.Errorf("%d of %d answers were not kept", z.lost, z.answers)
			}
			mu.Lock()
			defer mu.Unlock()
			sum = zombie{answers: sum.answers + z.answers, overlaps: sum.overlaps + z.overlaps, rounds: sum.rounds + 1}
		},
		after: func(t *testing.T) {
			t.Logf("%d answers when the process continued, %d calls repeated before", sum.answers, sum.overlaps)
			// The next holder may have begun all calls of a process by chance, but not of five.
			if sum.answers == sum.overlaps && sum.rounds >= 5 {
				t.Error("no process had an answer to keep")
			}
		},
	}
}

func (v *victim) stop(want trace) (z zombie) {
	v.overServer()
	if err := v.open().Close(); err != nil { // makes the tables
		v.Fatal(err)
	}
	pgtest.Exec(v, v.server, watchWrites)
	v.env = append(v.env, childSlow+"=2s")
	stopped := v.start("", childServes+"="+starts)
	defer stopped.Process.Kill()
	v.reach(stopped, 1)
	next := v.start("", childServes+"="+takesOver)
	defer next.Process.Kill()
	v.reach(stopped, 1+rand.N(60)) // of the 64 pieces of work before all lanes are done
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		v.Fatal(err)
	}
	time.Sleep(3 * rivalLease)
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		v.Fatal(err)
	}
	v.refused(stopped, "is held by")
	if !v.end(next) {
		v.Fatal("the process was killed by somebody else")
	}
	v.compare(v.trace(next, 0), want, 1)
	v.onlyAside(stopped.Process.Pid, next.Process.Pid)
	aside, began := v.order(stopped.Process.Pid, next.Process.Pid)
	if len(began) == 0 {
		v.Fatal("the next process has begun nothing")
	}

	acked, again := map[string]bool{}, map[string]bool{}
	for _, e := range v.entries("acks") {
		if _, path, _ := strings.Cut(e.what, " "); e.pid == stopped.Process.Pid {
			acked[path] = true
		}
	}
	for _, e := range v.entries("lines") {
		if e.pid == next.Process.Pid {
			again[e.what] = true
		}
	}
	for _, e := range v.entries("answers") {
		if e.pid != stopped.Process.Pid || acked[e.what] {
			continue
		}
		z.answers++
		at, kept := aside[e.what]
		switch {
		case strings.Contains(stopped.errs.String(), "the result of "+e.what+" is lost"), again[e.what] && kept && began[e.what] > at:
			z.lost++
		case again[e.what]:
			z.overlaps++
		}
	}
	return z
}

// reach waits until a number of pieces of work have begun, in a process or before.
func (v *victim) reach(p *process, pieces int) {
	v.Helper()
	if !v.began(p, pieces) {
		v.Fatalf("the process ended with %v before %d pieces of work: %s", p.Wait(), pieces, &p.errs)
	}
}

// began waits until a number of pieces of work have begun, and reports false if the process ended before.
func (v *victim) began(p *process, pieces int) bool {
	v.Helper()
	enough := func() bool { return len(v.entries("lines")) >= pieces }
	v.await(fmt.Sprintf("the run has not done %d pieces of work", pieces), func() bool { return p.over() || enough() })
	return enough()
}

// onlyAside checks that a process has only put results aside since the next one took its run.
func (v *victim) onlyAside(stopped, next int) {
	v.Helper()
	for _, row := range v.query(fmt.Sprintf(`SELECT what, seq FROM public.writes WHERE who = '%d' AND what <> 'lease'
		AND n > (SELECT min(n) FROM public.writes WHERE who = '%d') AND NOT (what = 'INSERT records' AND seq >= 1::bigint << 31)`, stopped, next)) {
		v.Errorf("the process that was stopped wrote: %s %s", row[0], row[1])
	}
}

// order returns the positions of transactions in their order, by the paths of results that one process
// put aside in them, and of steps that the other one began in them for the first time.
func (v *victim) order(stopped, next int) (aside, began map[string]int) {
	v.Helper()
	positions := func(what string, who int) map[string]int {
		at := map[string]int{}
		for _, row := range v.query(fmt.Sprintf(`SELECT place, min(lease.n) FROM (SELECT xid, %s AS place FROM public.writes WHERE who = '%d') AS w
			JOIN public.writes AS lease USING (xid) WHERE lease.what IN ('lease', 'UPDATE runs') AND place <> '' GROUP BY place`, what, who)) {
			n, err := strconv.Atoi(string(row[1]))
			if err != nil {
				v.Fatal(err)
			}
			at[string(row[0])] = n
		}
		return at
	}
	return positions("CASE WHEN seq >= 1::bigint << 31 THEN path END", stopped), positions("unnest(started)", next)
}

func (v *victim) query(text string) [][][]byte {
	v.Helper()
	ctx := v.Context()
	conn, err := pgconn.Connect(ctx, v.server)
	if err != nil {
		v.Fatal(err)
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, text).ReadAll()
	if err != nil {
		v.Fatal(err)
	}
	return results[0].Rows
}
