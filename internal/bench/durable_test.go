package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
)

// Durable work is a number of concurrent lines with a number of steps each, which read
// the 1 KB of the previous step and produce the next.
const (
	durableLines = 32
	durableSteps = 32
)

// A durable does the work in a folder, each time with another number, and returns when
// all of it is recorded.
type durable struct {
	name string
	open func(folder string) (work func(number int) error, done func() error, err error)
	// keeps is set if all steps are kept, and not only the last of a line.
	keeps bool
	// long is set if 100,000 steps take less than half a minute.
	long bool
}

var durables = append([]durable{{"floor", floorDurable, true, true}, {"stone", stoneDurable, true, true}}, peerDurables...)

// BenchmarkDurable is a step that survives the process, in a new file and in one that has
// 100,000 steps. Beside the CPU time it reports the elapsed time of each step, since that
// depends on the disk, and the bytes of files beyond its content.
func BenchmarkDurable(b *testing.B) {
	for _, before := range []int{0, 100_000} {
		for _, who := range durables {
			if before > 0 && !who.long {
				continue
			}
			b.Run(fmt.Sprintf("%d/%s", before, who.name), func(b *testing.B) { benchDurable(b, who, before) })
		}
	}
}

func benchDurable(b *testing.B, who durable, before int) {
	const steps = durableLines * durableSteps
	folder := b.TempDir()
	work, done, err := who.open(folder)
	if err != nil {
		b.Fatal(err)
	}
	number := 0
	next := func() error {
		number++
		return work(number)
	}
	for number*steps < before {
		if err := next(); err != nil {
			b.Fatal(err)
		}
	}
	first, begin := number, time.Now()
	measure(b, steps, "step", next)
	b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64((number-first)*steps), "elapsed-ns/step")
	if err := done(); err != nil {
		b.Fatal(err)
	}
	if !who.keeps {
		return
	}
	content, err := json.Marshal(aKilo)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(folderSize(b, folder))/float64(number*steps)-float64(len(content)), "file-B/step")
}

func folderSize(b *testing.B, folder string) (size int64) {
	b.Helper()
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// atOnce calls do once for each line, concurrently.
func atOnce(do func(line int) error) error { return together(durableLines, do) }

// stoneLines has a lane for each line, and joins them at the end.
func stoneLines(length int) stone.Ashlar {
	doc := dag.NewType[kilo]("doc")
	names := stepNames(length)
	steps := []stone.Ashlar{stone.Func(names[0], anItem, doc, func(context.Context, item) (kilo, error) { return aKilo.next(), nil })}
	for _, name := range names[1:] {
		steps = append(steps, stone.Func(name, doc, doc, func(_ context.Context, v kilo) (kilo, error) { return v.next(), nil }))
	}
	lanes := dag.ReaderFunc(func(dag.DAG) ([]item, error) { return batch{Lanes: durableLines}.items(), nil })
	return stone.Seq("lines", stone.Map("all", lanes, anItem, stone.Seq("line", steps...)),
		stone.Reduce(stone.Func("count", dag.All(doc), aTotal, func(_ context.Context, all []kilo) (total, error) {
			return total{Lanes: len(all)}, nil
		})))
}

// stoneDurable does all lines in one run.
func stoneDurable(folder string) (func(int) error, func() error, error) {
	db, err := sqlite.Open(filepath.Join(folder, "stone.db"), sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	p := stoneLines(durableSteps)
	work := func(number int) error {
		run := fmt.Sprint("run-", number)
		_, err := stone.Run(context.Background(), p, stone.Config{RunID: run, Recorder: db})
		if err != nil {
			return err
		}
		return db.Release(run)
	}
	return work, db.Close, nil
}

// floorDurable is one row for each step, in commits shared by all waiting callers, with
// the driver and the settings of journal/sqlite.
func floorDurable(folder string) (func(int) error, func() error, error) {
	file := filepath.Join(folder, "raw.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=page_size(8192)&_pragma=synchronous(FULL)&_pragma=cache_size(-8192)&_pragma=wal_autocheckpoint(4096)")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA journal_mode = WAL; CREATE TABLE raw (seq INTEGER PRIMARY KEY, id BLOB UNIQUE, path TEXT, content BLOB)"); err != nil {
		return nil, nil, err
	}
	w := &rawWriter{db: db, queue: make(chan *rawRow, durableLines)}
	if w.insert, err = db.Prepare("INSERT INTO raw (id, path, content) VALUES (?, ?, ?)"); err != nil {
		return nil, nil, err
	}
	var writing sync.WaitGroup
	writing.Go(w.loop)
	done := func() error {
		close(w.queue)
		writing.Wait()
		if err := w.insert.Close(); err != nil {
			return err
		}
		return db.Close()
	}
	return func(number int) error { return atOnce(func(line int) error { return w.line(number, line) }) }, done, nil
}

type rawRow struct {
	id      [sha256.Size]byte
	path    string
	content []byte
	done    chan error
}

type rawWriter struct {
	db     *sql.DB
	insert *sql.Stmt
	queue  chan *rawRow
}

func (w *rawWriter) line(number, line int) error {
	v := aKilo
	for step := range durableSteps {
		v = v.next()
		content, err := json.Marshal(v)
		if err != nil {
			return err
		}
		path := fmt.Sprintf("run-%d/lines/all[%d]/line/step-%d", number, line, step)
		r := &rawRow{id: sha256.Sum256([]byte(path)), path: path, content: content, done: make(chan error, 1)}
		w.queue <- r
		if err := <-r.done; err != nil {
			return err
		}
	}
	return nil
}

// loop gathers more writes before each commit, as journal/sqlite does.
func (w *rawWriter) loop() {
	for first := range w.queue {
		group := []*rawRow{first}
		for before := -1; before < len(w.queue); {
			before = len(w.queue)
			runtime.Gosched()
		}
		for len(w.queue) > 0 {
			group = append(group, <-w.queue)
		}
		err := w.commit(group)
		for _, r := range group {
			r.done <- err
		}
	}
}

func (w *rawWriter) commit(group []*rawRow) error {
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert := tx.Stmt(w.insert)
	for _, r := range group {
		if _, err := insert.Exec(r.id[:], r.path, r.content); err != nil {
			return err
		}
	}
	return tx.Commit()
}
