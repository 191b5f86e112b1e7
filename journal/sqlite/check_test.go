package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// checked returns what Check finds, one damage a line.
func checked(t *testing.T, db *DB) (found string, runs, records int) {
	t.Helper()
	runs, records, err := db.Check(t.Context(), func(e *journal.DamageError) { found += e.Error() + "\n" })
	if err != nil {
		t.Fatal(err)
	}
	return found, runs, records
}

// whole is the file of makeChecked, which takes long to make.
var whole []byte

// makeChecked makes a file with a pipeline of two nodes, a large run with an outline, and a board.
func makeChecked(t *testing.T, file string) {
	t.Helper()
	if whole != nil {
		writeFile(t, file, string(whole))
		return
	}
	db := open(t, file, Options{})
	second := dag.NewType[string]("second")
	p := stone.Seq("p",
		stone.Func0("one", draft, func(context.Context) (string, error) { return "hello", nil }),
		stone.Func("two", draft, second, func(_ context.Context, s string) (string, error) { return s + " you", nil }))
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(db, journal.Options{Labels: map[string]string{"team": "a"}})}); err != nil {
		t.Fatal(err)
	}
	lanes(t, db, 0, 4500)
	_, err := db.Acquire(t.Context(), "boarded")
	if err == nil {
		err = db.Begin(t.Context(), journal.RunInfo{ID: "boarded"}, dag.DAG{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if found, runs, records := checked(t, db); found != "" || runs != 3 || records < 4500 {
		t.Errorf("a whole database: %d runs, %d records, %s; want 3, at least 4500 and no damage", runs, records, found)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	makeChecked(t, filepath.Join(memdir.New(t), "stone.db"))
	text := whole
	const (
		ofRun  = "seq >> 32 = (SELECT run FROM runs WHERE id = 'run')"
		schema = "PRAGMA writable_schema = ON; "
	)
	for _, c := range []struct{ name, sql, want string }{
		{"a bit of a content", "UPDATE records SET content = CAST('\"hellp\"' AS BLOB) WHERE content = CAST('\"hello\"' AS BLOB)", "was changed after it was written"},
		{"a head", "UPDATE records SET head = replace(head, '\"at\":1', '\"at\":2') WHERE node IS NOT NULL AND " + ofRun, "was changed after it was written"},
		{"a missing row", "DELETE FROM records WHERE seq = (SELECT max(seq) FROM records WHERE " + ofRun + ")", "is not complete"},
		{"a gap", "DELETE FROM records WHERE seq = (SELECT min(seq) + 1 FROM records WHERE " + ofRun + ")", "is not complete"},
		{"a row too many", "INSERT INTO records SELECT seq + 10, digest, reuse, node, parents, path, head, seal, content FROM records WHERE seq = (SELECT max(seq) FROM records WHERE " + ofRun + ")", "is not complete"},
		{"a run", "DELETE FROM runs WHERE id = 'run'", "rows in the table records of runs that it does not have"},
		{"a question of no run", "INSERT INTO questions (run, path, open, question, seal) VALUES (999, 'q', 0, '{}', x'00')", "has 1 rows in the table questions of runs"},
		{"a block of no run", "INSERT INTO blocks (run, parent, slot, counts, seal, data) VALUES (999, 0, 0, x'00', x'00', x'00')", "has 1 rows in the table blocks of runs"},
		{"an unsealed column", "UPDATE runs SET pipeline = 'q' WHERE id = 'run'", "has other columns than facts"},
		{"labels", "DELETE FROM labels", "is not found by its labels"},
		{"an index that is gone", "DROP INDEX nodes", "lacks the index nodes, or has another one"},
		{"an index of another form", "DROP INDEX nodes; CREATE INDEX nodes ON records (node) WHERE node IS NOT NULL", "lacks the index nodes, or has another one"},
		{"an outline", "UPDATE blocks SET data = zeroblob(length(data))", "has a damaged outline"},
		{"an index that lacks rows", schema + "UPDATE sqlite_schema SET sql = replace(sql, 'path IS NOT NULL', 'path IS NULL') WHERE name = 'paths'", "is damaged: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(memdir.New(t), "stone.db")
			writeFile(t, file, string(text))
			execute(t, file, c.sql)
			db := open(t, file, Options{})
			if found, _, _ := checked(t, db); !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
	t.Run("each page", func(t *testing.T) { // every page that is overwritten is found when the file is opened or checked
		for at := 1; at < len(text)/8192; at += 31 {
			bad := bytes.Clone(text)
			for i := range 8192 {
				bad[at*8192+i] ^= 0x5a
			}
			if err := missed(t, bad); err != nil {
				t.Errorf("page %d of %d: %v", at+1, len(text)/8192, err)
			}
		}
	})
	t.Run("cut off", func(t *testing.T) {
		for _, size := range []int{8192, len(text) / 3, len(text) - 8192, len(text) - 1} {
			if err := missed(t, text[:size]); err != nil {
				t.Errorf("%d of %d bytes: %v", size, len(text), err)
			}
		}
	})
	t.Run("schema of a later version", func(t *testing.T) {
		file := filepath.Join(memdir.New(t), "stone.db")
		writeFile(t, file, string(text))
		execute(t, file, "PRAGMA user_version = 77")
		_, err := Open(file, Options{})
		wantError(t, err, "has schema 77")
	})
}

// missed returns an error unless the damage of a file is found.
func missed(t *testing.T, text []byte) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stone.db")
	writeFile(t, file, string(text))
	db, err := Open(file, Options{})
	if err != nil {
		return nil
	}
	defer db.Close()
	n := 0
	if _, _, err := db.Check(t.Context(), func(*journal.DamageError) { n++ }); err != nil || n == 0 {
		return fmt.Errorf("found %d, %w", n, cmp.Or(err, errors.New("no error")))
	}
	return nil
}

// A program that seals what it writes may still write a node that is not what its address says, or one
// without its parents.
func TestCheckAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *sealedRow)
		want   string
	}{
		"content": {func(r *sealedRow) { r.content = []byte(`"other"`) }, "but its content, type and parents give"},
		"parents": {func(r *sealedRow) { r.parents = bytes.Repeat([]byte{7}, 32) }, "but its content, type and parents give"},
		"type":    {func(r *sealedRow) { r.head = strings.Replace(r.head, `"second"`, `"third"`, 1) }, "but its content, type and parents give"},
		"dangling": {func(r *sealedRow) {
			r.parents = bytes.Repeat([]byte{7}, 32)
			sum := sha256.Sum256(fmt.Appendf(nil, `{"content":%s,"parents":["%x"],"type":"second"}`, r.content, r.parents))
			r.node = sum[:]
		}, "has the parent 070707070707, which is not before it"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(memdir.New(t), "stone.db")
			makeChecked(t, file)
			db := open(t, file, Options{})
			var r sealedRow
			row := db.file.pool.QueryRow("SELECT seq, digest, reuse, node, parents, path, head, content FROM records WHERE content = CAST('\"hello you\"' AS BLOB)")
			if err := row.Scan(&r.seq, &r.digest, &r.reuse, &r.node, &r.parents, &r.path, &r.head, &r.content); err != nil {
				t.Fatal(err)
			}
			if c.change(&r); !strings.Contains(r.head, `"type"`) {
				t.Fatalf("head %s", r.head)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			execute(t, file, fmt.Sprintf("UPDATE records SET node = x'%x', parents = x'%x', head = '%s', content = x'%x', seal = x'%x' WHERE seq = %d",
				r.node, r.parents, r.head, r.content, r.seal(), r.seq))
			found, _, _ := checked(t, open(t, file, Options{}))
			if !strings.Contains(found, c.want) || strings.Contains(found, "was changed") {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// sealedRow is a record whose seal this test computes without package log.
type sealedRow struct {
	seq                                   int64
	digest, reuse, node, parents, content []byte
	path, head                            string
}

func (r *sealedRow) seal() []byte {
	content := sha256.Sum256(r.content)
	var text []byte
	for _, field := range [][]byte{r.digest, r.reuse, r.node, r.parents, []byte(r.path), []byte(r.head), content[:8]} {
		text = append(binary.LittleEndian.AppendUint64(text, uint64(len(field))), field...)
	}
	sum := sha256.Sum256(text)
	return append(sum[:8:8], content[:8]...)
}

// A copy that is made while others write is a state of one moment, and runs continue from it.
func TestBackup(t *testing.T) {
	dir := memdir.New(t)
	file, copied := filepath.Join(dir, "stone.db"), filepath.Join(dir, "copy.db")
	makeChecked(t, file)
	db, other := open(t, file, Options{}), open(t, file, Options{})
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int)
	started := make(chan struct{})
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			key := stepKey("busy", byte(n))
			key.Path = fmt.Sprint("p/", n)
			key.Digest[1], key.Digest[2] = byte(n>>8), byte(n>>16)
			if _, err := other.Do(context.Background(), key, work(new(atomic.Int64))); err != nil {
				t.Error(err)
				break
			}
			if n == 20 {
				close(started)
			}
		}
		written <- n
	}()
	<-started
	size, err := db.Backup(t.Context(), copied)
	if found, runs, _ := checked(t, db); found != "" || runs != 4 { // while the other one writes
		t.Errorf("%d runs, damage: %s", runs, found)
	}
	stop()
	n := <-written
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(copied)
	if err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v; want %d bytes for its owner", info, err, size)
	}
	made := open(t, copied, Options{})
	found, runs, _ := checked(t, made)
	steps, err := made.Steps(t.Context(), "busy")
	if found != "" || runs != 4 || err != nil || len(steps) < 20 || len(steps) > n {
		t.Errorf("the copy has %d runs and %d steps of %d, %v; damage: %s", runs, len(steps), n, err, found)
	}
	before, _ := os.ReadFile(copied)
	if _, err := db.Backup(t.Context(), copied); err == nil || !strings.Contains(err.Error(), "the file exists: name a new one") {
		t.Errorf("a second backup: %v, want that the file exists", err)
	}
	if after, _ := os.ReadFile(copied); !bytes.Equal(before, after) {
		t.Error("a refused backup changed the file")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Backup(canceled, filepath.Join(dir, "none.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled backup: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*none*")); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".stone-backup-*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
