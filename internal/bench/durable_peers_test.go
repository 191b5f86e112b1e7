//go:build !alone

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	"github.com/smallnest/langgraphgo/graph"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session/database"
	"google.golang.org/genai"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils/tests"
	_ "modernc.org/sqlite" // the driver of all stores that take one
	trpc "trpc.group/trpc-go/trpc-agent-go/graph"
	trpcstore "trpc.group/trpc-go/trpc-agent-go/graph/checkpoint/sqlite"
)

// openSQLite opens a database for the stores that take one, with the driver and the
// durability settings of Stone.
func openSQLite(folder string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "peer.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// gormSQLite is the part of a dialect that the store of adk needs. The existing dialects
// need a C compiler or a second driver of the same name.
type gormSQLite struct {
	tests.DummyDialector
	db *sql.DB
}

func (gormSQLite) Name() string { return "sqlite" }

func (d gormSQLite) Initialize(db *gorm.DB) error {
	db.ConnPool = d.db
	return d.DummyDialector.Initialize(db)
}

func (d gormSQLite) Migrator(db *gorm.DB) gorm.Migrator {
	return gormTables{migrator.Migrator{Config: migrator.Config{DB: db, Dialector: d, CreateIndexAfterCreateTable: true}}}
}

func (gormSQLite) DataTypeOf(f *schema.Field) string {
	switch f.DataType {
	case schema.Bool, schema.Int, schema.Uint:
		return "integer"
	case schema.Time:
		return "datetime"
	case schema.Bytes:
		return "blob"
	}
	return "text"
}

type gormTables struct{ migrator.Migrator }

// HasTable is called for a new database.
func (gormTables) HasTable(any) bool { return false }

// adkDurable has a session for each line, whose events its store keeps.
func adkDurable(folder string) (func(int) error, func() error, error) {
	db, err := openSQLite(folder)
	if err != nil {
		return nil, nil, err
	}
	sessions, err := database.NewSessionService(gormSQLite{db: db}, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, nil, err
	}
	if err := database.AutoMigrate(sessions); err != nil {
		return nil, nil, err
	}
	line, err := adkLine(stepNames(durableSteps), aKilo)
	if err != nil {
		return nil, nil, err
	}
	r, err := runner.New(runner.Config{AppName: "bench", Agent: line, SessionService: sessions, AutoCreateSession: true})
	start := genai.NewContentFromText("start", genai.RoleUser)
	work := func(number int) error {
		return atOnce(func(line int) error {
			outputs := 0
			for event, err := range r.Run(context.Background(), "user", fmt.Sprintf("run-%d-%d", number, line), start, agent.RunConfig{}) {
				if err != nil {
					return err
				}
				if event.Output != nil {
					outputs++
				}
			}
			if outputs != durableSteps {
				return fmt.Errorf("%d of %d steps ran", outputs, durableSteps)
			}
			return nil
		})
	}
	return work, db.Close, err
}

// langgraphDurable keeps the last ten checkpoints of each line in files that it does not
// sync, which is its default. Each line has a folder, since a checkpoint reads all files
// in its folder.
func langgraphDurable(folder string) (func(int) error, func() error, error) {
	work := func(number int) error {
		return atOnce(func(line int) error {
			thread := fmt.Sprintf("run-%d-%d", number, line)
			store, err := graph.NewFileCheckpointStore(filepath.Join(folder, thread))
			if err != nil {
				return err
			}
			config := graph.DefaultCheckpointConfig()
			config.Store = store
			g := graph.NewCheckpointableStateGraphWithConfig[*kilo](config)
			names := append(stepNames(durableSteps), graph.END)
			for i, name := range names[:durableSteps] {
				g.AddNode(name, "", func(_ context.Context, v *kilo) (*kilo, error) {
					next := (*v).next()
					return &next, nil
				})
				g.AddConditionalEdge(name, func(context.Context, *kilo) string { return names[i+1] })
			}
			g.SetEntryPoint(names[0])
			run, err := g.CompileCheckpointable()
			if err != nil {
				return err
			}
			last, err := run.InvokeWithConfig(context.Background(), &aKilo, graph.WithThreadID(thread))
			if err == nil && last.N != durableSteps {
				err = fmt.Errorf("%d of %d steps ran", last.N, durableSteps)
			}
			return err
		})
	}
	return work, func() error { return nil }, nil
}

// trpcDurable has a lineage of checkpoints for each line.
func trpcDurable(folder string) (func(int) error, func() error, error) {
	db, err := openSQLite(folder)
	if err != nil {
		return nil, nil, err
	}
	saver, err := trpcstore.NewSaver(db)
	if err != nil {
		return nil, nil, err
	}
	taken := make(chan int, durableLines)
	g, err := trpcLine(stepNames(durableSteps), func(v *kilo) { taken <- v.N })
	if err != nil {
		return nil, nil, err
	}
	e, err := trpc.NewExecutor(g, trpc.WithMaxSteps(durableSteps+1), trpc.WithExecutionEngine(trpc.ExecutionEngineBSP), trpc.WithCheckpointSaver(saver))
	work := func(number int) error {
		err := atOnce(func(line int) error {
			return trpcRun(e, trpc.State{"doc": &aKilo, trpc.CfgKeyLineageID: fmt.Sprintf("run-%d-%d", number, line)})
		})
		for range durableLines {
			if n := <-taken; n != durableSteps {
				return fmt.Errorf("%d of %d steps ran", n, durableSteps)
			}
		}
		return err
	}
	return work, db.Close, err
}
