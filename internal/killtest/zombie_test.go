package killtest

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/internal/pgtest"
)

// watchWrites makes the database note who writes: each process is named by its number. A
// process that was stopped may take a free run, and leave it without a change.
const watchWrites = `
CREATE TABLE public.writes (n bigserial, who text, what text, seq bigint, path text, at bigint);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	lease CONSTANT text[] := '{beat,owner,lease,outside}';
	before jsonb := to_jsonb(OLD); after jsonb := to_jsonb(NEW); what text := TG_OP || ' ' || TG_TABLE_NAME;
BEGIN
	IF before - lease IS NOT DISTINCT FROM after - lease THEN
		what := 'lease';
	END IF;
	INSERT INTO public.writes (who, what, seq, path, at) VALUES (current_setting('application_name'), what,
		(coalesce(after, before)->>'seq')::bigint, ((after->>'head')::jsonb)->>'path', extract(epoch FROM clock_timestamp()) * 1e9);
	RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stone.runs FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stone.records FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON stone.questions FOR EACH ROW EXECUTE FUNCTION public.note();`

// zombie is what became of processes that were stopped for so long that they lost their run.
type zombie struct {
	answers  int // that had come when the process continued, and had not been acknowledged
	overlaps int // of them, answers to calls that the next holder repeated before they were written
	lost     int // of them, answers to calls that it repeated later, or that were never written
}

// A process is stopped for three leases. When it continues, another one holds its run. It
// writes no intent, node or end, but its answers are kept.
func TestZombies(t *testing.T) {
	want, stops := undisturbed(t), share(t, 200)
	var mu sync.Mutex
	var sum zombie
	t.Run("stops", func(t *testing.T) {
		for range stops {
			t.Run("stop", func(t *testing.T) {
				t.Parallel()
				z := stop(t, want)
				mu.Lock()
				defer mu.Unlock()
				sum.answers, sum.overlaps, sum.lost = sum.answers+z.answers, sum.overlaps+z.overlaps, sum.lost+z.lost
			})
		}
	})
	own := sum.answers - sum.overlaps
	t.Logf("%d stops: %d answers when the process continued, %d calls repeated before, %d of the other %d after", stops, sum.answers, sum.overlaps, sum.lost, own)
	if most := own / 20; sum.lost > most || own == 0 {
		t.Errorf("%d of %d answers were not kept, want at most %d", sum.lost, own, most)
	}
}

func stop(t *testing.T, want trace) (z zombie) {
	v := newVictim(t).overServer()
	if err := v.open().Close(); err != nil { // makes the tables
		t.Fatal(err)
	}
	pgtest.Exec(t, v.server, watchWrites)
	v.env = append(v.env, childSlow+"=2s")
	stopped := v.start("", childServes+"="+starts)
	defer stopped.Process.Kill()
	v.reach(stopped, 1)
	next := v.start("", childServes+"="+takesOver)
	defer next.Process.Kill()
	v.reach(stopped, 1+rand.N(60)) // of the 64 pieces of work before all lanes are done
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * rivalLease)
	continued := time.Now().UnixNano()
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	v.refused(stopped, "is held by")
	if !v.end(next) {
		t.Fatal("the process was killed by somebody else")
	}
	v.compare(v.trace(next, 0), want, 1)
	aside := v.onlyAside(stopped.Process.Pid, next.Process.Pid)

	acked, again := map[string]bool{}, map[string]int64{}
	for _, e := range v.entries("acks") {
		if _, path, _ := strings.Cut(e.what, " "); e.pid == stopped.Process.Pid {
			acked[path] = true
		}
	}
	for _, e := range v.entries("lines") {
		if e.pid == next.Process.Pid {
			again[e.what] = e.at
		}
	}
	for _, e := range v.entries("answers") {
		if e.pid != stopped.Process.Pid || acked[e.what] {
			continue
		}
		z.answers++
		at, repeated := again[e.what]
		written, kept := aside[e.what]
		switch {
		case repeated && at < max(e.at, continued, written):
			z.overlaps++
		case repeated, !kept:
			z.lost++
		}
	}
	return z
}

// reach waits until a process has begun a number of pieces of work.
func (v *victim) reach(p *process, pieces int) {
	v.Helper()
	for limit := time.Now().Add(20 * time.Second); len(v.entries("lines")) < pieces; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			_ = p.Process.Kill() // for its errors
			_ = p.Wait()
			v.Fatalf("the run has not done %d pieces of work after 20 s: %s", pieces, &p.errs)
		}
	}
}

// onlyAside checks that a process has only put results aside since the next one took its run. It
// returns the times at which it did, by the paths of the results.
func (v *victim) onlyAside(stopped, next int) map[string]int64 {
	v.Helper()
	ctx := v.Context()
	conn, err := pgconn.Connect(ctx, v.server)
	if err != nil {
		v.Fatal(err)
	}
	defer conn.Close(ctx)
	who := func(pid int) string { return "'" + strconv.Itoa(pid) + "'" }
	results, err := conn.Exec(ctx, `SELECT min(n) FROM public.writes WHERE who = `+who(next)+`;
		SELECT what, seq, path, at, what = 'INSERT records' AND seq >= 1::bigint << 31 FROM public.writes
			WHERE who = `+who(stopped)+` AND what <> 'lease' AND n > (SELECT min(n) FROM public.writes WHERE who = `+who(next)+")").ReadAll()
	if err != nil {
		v.Fatal(err)
	}
	if results[0].Rows[0][0] == nil {
		v.Fatal("the next process has not taken the run")
	}
	aside := map[string]int64{}
	for _, row := range results[1].Rows {
		if string(row[4]) != "t" {
			v.Errorf("the process that was stopped wrote: %s %s", row[0], row[1])
			continue
		}
		if aside[string(row[2])], err = strconv.ParseInt(string(row[3]), 10, 64); err != nil {
			v.Fatal(err)
		}
	}
	return aside
}
