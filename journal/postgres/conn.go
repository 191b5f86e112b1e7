package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stonelayer/stone/journal"
)

// statement is a statement with its arguments, which can be nil, int64, float64, string, bool, []byte, texts, blobs or []int64. If
// each is not nil, it is called with each row of the result.
type statement struct {
	text string
	args []any
	each func([][]byte) // the argument is valid only during the call
}

// large reports whether the statement must be sent as the first message after a response. PostgreSQL applies its timeouts within
// a message only if the message is the first after a response. Otherwise a process that stops while sending a large statement
// would keep its locks.
func (s statement) large() bool {
	size := 0
	for _, arg := range s.args {
		contents, _ := arg.(blobs)
		for _, c := range contents {
			size += len(c)
		}
	}
	return size >= 64<<10
}

type (
	texts []*string
	blobs [][]byte
)

var binaries = []int16{pgtype.BinaryFormatCode}

// exchange sends all statements together and reads the responses. All values are sent and received in binary format.
func exchange(ctx context.Context, conn *pgconn.PgConn, statements ...statement) error {
	var batch pgconn.Batch
	for _, s := range statements {
		values, types := make([][]byte, len(s.args)), make([]uint32, len(s.args))
		for i, arg := range s.args {
			values[i], types[i] = encode(arg)
		}
		named, err := prepared(ctx, conn, s, types)
		switch {
		case err != nil:
			return err
		case named != nil:
			batch.ExecStatement(named, values, binaries, binaries)
		default:
			batch.ExecParams(s.text, values, types, binaries, binaries)
		}
	}
	results := conn.ExecBatch(ctx, &batch)
	for i := 0; results.NextResult(); i++ {
		rows := results.ResultReader()
		for rows.NextRow() {
			if each := statements[i].each; each != nil {
				each(rows.Values())
			}
		}
	}
	n, _ := conn.CustomData()[namesKey].(*names)
	return n.failed(results.Close())
}

// names holds the prepared statements of a connection, by text; nil stands for a statement that has been sent only once. The
// server parses and plans each prepared statement only once, which saves a third of its work. Large statements are always
// prepared, so that each is sent as a single message. A pooler such as PgBouncer may use a different connection for each
// transaction, which does not have the prepared statements. After the first error of this kind, the DB stops using prepared
// statements and repeats the statement.
type names struct {
	pooled *atomic.Bool
	all    bool // prepare all statements; set for the writing connection, because the others have many rare statements
	kept   map[string]*pgconn.StatementDescription
}

// mostNames is the maximum number of prepared statements on a connection.
const mostNames = 64

const namesKey = "stone names"

// connect opens a connection that keeps prepared statements.
func (p *pool) connect(ctx context.Context, writes bool) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, p.config)
	if err == nil {
		conn.CustomData()[namesKey] = &names{&p.pooled, writes, map[string]*pgconn.StatementDescription{}}
	}
	return conn, err
}

// prepared returns the prepared statement for s, or nil if there is none. It prepares a statement when it is sent for the second
// time.
func prepared(ctx context.Context, conn *pgconn.PgConn, s statement, types []uint32) (*pgconn.StatementDescription, error) {
	n, _ := conn.CustomData()[namesKey].(*names)
	if n != nil && n.pooled.Load() && s.large() {
		return conn.Prepare(ctx, "", s.text, types)
	}
	if n == nil || n.pooled.Load() || len(s.args) == 0 || !n.all && !often[s.text] {
		return nil, nil
	}
	named, again := n.kept[s.text]
	again = again || s.large()
	if named != nil || !again && len(n.kept) == mostNames {
		return named, nil
	}
	if again {
		var err error
		// The name is derived from the text, because a pooler's connection may have statements that other versions of this program
		// prepared.
		hash := sha256.Sum256(fmt.Append(nil, s.text, types))
		if named, err = conn.Prepare(ctx, fmt.Sprintf("stone_%x", hash[:16]), s.text, types); err != nil {
			return nil, n.failed(err)
		}
	}
	n.kept[s.text] = named
	return named, nil
}

// failed stops the use of prepared statements if err shows that a pooler loses them.
func (n *names) failed(err error) error {
	if n != nil && isUnknownName(err) {
		n.pooled.Store(true)
	}
	return err
}

func encode(arg any) (value []byte, oid uint32) {
	switch arg := arg.(type) {
	case nil:
		return nil, 0
	case int64:
		return integerOf(arg), pgtype.Int8OID
	case float64:
		return integerOf(int64(math.Float64bits(arg))), pgtype.Float8OID
	case string:
		return []byte(arg), pgtype.TextOID
	case []byte:
		return arg, pgtype.ByteaOID
	case bool:
		value = []byte{0}
		if arg {
			value[0] = 1
		}
		return value, pgtype.BoolOID
	case []int64:
		return array(len(arg), pgtype.Int8OID, func(int) int { return 8 }, func(out []byte, i int) []byte {
			return binary.BigEndian.AppendUint64(out, uint64(arg[i]))
		}), pgtype.Int8ArrayOID
	case texts:
		return array(len(arg), pgtype.TextOID, func(i int) int {
			if arg[i] == nil {
				return null
			}
			return len(*arg[i])
		}, func(out []byte, i int) []byte { return append(out, *arg[i]...) }), pgtype.TextArrayOID
	case blobs:
		return array(len(arg), pgtype.ByteaOID, func(i int) int {
			if arg[i] == nil {
				return null
			}
			return len(arg[i])
		}, func(out []byte, i int) []byte { return append(out, arg[i]...) }), pgtype.ByteaArrayOID
	}
	panic(fmt.Sprintf("postgres: argument of type %T", arg))
}

// null is the length of a NULL element.
const null = -1

// array encodes a one-dimensional array in the format that PostgreSQL's array_recv (in arrayfuncs.c) reads.
func array(n int, oid uint32, length func(int) int, element func([]byte, int) []byte) []byte {
	header := []uint32{1, 1, oid, uint32(n), 1} // dimensions, has NULLs, type, size, first index
	if n == 0 {
		header = []uint32{0, 0, oid}
	}
	size := 4 * (len(header) + n)
	for i := range n {
		size += max(length(i), 0)
	}
	out := make([]byte, 0, size)
	for _, field := range header {
		out = binary.BigEndian.AppendUint32(out, field)
	}
	for i := range n {
		size := length(i)
		if out = binary.BigEndian.AppendUint32(out, uint32(size)); size != null {
			out = element(out, i)
		}
	}
	return out
}

func integerOf(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func integer(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }

// pool holds the connections for reads.
type pool struct {
	config *pgconn.Config
	pooled atomic.Bool // a pooler was detected, so statements are no longer prepared
	places chan struct{}
	idle   chan *pgconn.PgConn
	closed atomic.Bool
}

// take returns a connection. The caller must return it with give.
func (p *pool) take(ctx context.Context) (*pgconn.PgConn, error) {
	if p.closed.Load() {
		return nil, journal.ErrClosed
	}
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case conn := <-p.idle:
		return conn, nil
	default:
	}
	conn, err := p.connect(ctx, false)
	if err != nil {
		<-p.places
	}
	return conn, err
}

// give returns a connection to the pool. It closes a connection that is lost or within a transaction.
func (p *pool) give(conn *pgconn.PgConn) {
	if conn.IsClosed() || conn.TxStatus() != 'I' {
		drop(conn)
	} else {
		p.idle <- conn
	}
	<-p.places
	if p.closed.Load() {
		p.shrink()
	}
}

func (p *pool) close() {
	p.closed.Store(true)
	p.shrink()
}

// shrink closes all connections that are not in use.
func (p *pool) shrink() {
	for {
		select {
		case conn := <-p.idle:
			drop(conn)
		default:
			return
		}
	}
}

// drop closes a lost or unneeded connection.
func drop(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // even if this fails, the server notices
}

// query executes a statement and reads its rows. After a temporary failure it calls reset and repeats the statement.
func (d *database) query(ctx context.Context, s statement, reset func()) error {
	started := time.Now()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		reset()
		err := d.queryOnce(ctx, s)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !d.Passing(err) || untrusted(err) || time.Since(started)+pause > d.retry {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

var errSlow = errors.New("did not answer in time")

func (d *database) queryOnce(ctx context.Context, s statement) error {
	ctx, cancel := d.within(ctx, mostBytes)
	defer cancel()
	conn, err := d.pool.take(ctx)
	if err != nil {
		return err
	}
	err = exchange(ctx, conn, s)
	d.pool.give(conn)
	return err
}
