package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"lockstep/checkpoints"
	"lockstep/connectors"
	"lockstep/connectors/postgres/pgtest"
)

// proxy stands between a run and the server. Its faults look at the messages on the wire.
type proxy struct {
	listener net.Listener
	socket   string

	mu    sync.Mutex
	fault func(statement string) (before, after bool) // cut before a statement goes to the server, or before its answer comes back
	cuts  int
	conns []net.Conn
	wg    sync.WaitGroup
}

func startProxy(t *testing.T, socket string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: l, socket: socket}
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("unix", p.socket)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	closeBoth := func() { _ = client.Close(); _ = server.Close() }
	var swallow sync.Once
	silent := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer closeBoth()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-silent: // the server has answered; nobody hears it
				return
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	defer func() { closeBoth(); <-done }()
	if _, err := copyMessage(server, client); err != nil { // the startup packet has no type
		return
	}
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if statement := statementIn(head[0], body); statement != "" {
			before, after := p.hit(statement)
			if before {
				return
			}
			if after {
				swallow.Do(func() { close(silent) })
			}
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

func copyMessage(to io.Writer, from io.Reader) (int, error) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(from, size); err != nil {
		return 0, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size)-4)
	if _, err := io.ReadFull(from, body); err != nil {
		return 0, err
	}
	return to.Write(append(size, body...))
}

// statementIn is the text of a Query or Parse message.
func statementIn(kind byte, body []byte) string {
	switch kind {
	case 'Q':
		return string(body[:len(body)-1])
	case 'P':
		for i, b := range body { // the name comes first
			if b == 0 {
				rest := body[i+1:]
				for j, c := range rest {
					if c == 0 {
						return string(rest[:j])
					}
				}
			}
		}
	}
	return ""
}

func (p *proxy) hit(statement string) (before, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		return false, false
	}
	before, after = p.fault(statement)
	if before || after {
		p.cuts++
	}
	return before, after
}

// set gives the proxy its next fault, and tells how often the one before came.
func (p *proxy) set(fault func(string) (bool, bool)) (cuts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cuts = p.cuts
	p.fault, p.cuts = fault, 0
	return cuts
}

// wireChange is a change that inserts one row.
func wireChange(t *testing.T, d *Destination, head connectors.Head, row int) *connectors.Change {
	t.Helper()
	ctx := context.Background()
	sink := connectors.SinkSpec{Name: "mart.wire", Table: "wire", Key: []string{"k"}, Columns: []connectors.SinkColumn{{Name: "k", Type: "INTEGER"}}}
	tx, err := d.eng.Begin(ctx)
	must(t, err)
	must(t, d.eng.Exec(ctx, "CREATE OR REPLACE TEMP TABLE staged AS SELECT CAST(? AS INTEGER) AS k, 'I' AS _op", row))
	plan := connectors.PlanRecord{ID: "plan", Canon: 1, SQL: "SELECT", Canonical: "{}"}
	counts := checkpoints.SinkCount{Inserted: 1, Rows: head.Manifest.Sinks["mart.wire"].Rows + 1, Digest: checkpoints.Digest{}.String()}
	m := checkpoints.Manifest{Pipeline: "p", Seq: head.Manifest.Seq + 1, Incarnation: 1, Batch: head.LastBatch + 1, Attempt: uuid.NewString(), Kind: checkpoints.KindBatch,
		ParentSeq: head.Manifest.Seq, PlanID: plan.ID, BatchTime: checkpoints.Time(time.Now()), Env: checkpoints.Env{Engine: "1", DuckDB: "1", TimeZone: "UTC"},
		Position: map[string]checkpoints.PositionSum{}, Sinks: map[string]checkpoints.SinkCount{"mart.wire": counts}, RangesSHA: checkpoints.RangesSHA(nil), Live: head.Manifest.Live.After(nil, nil)}
	if head.Manifest.Seq > 0 {
		m.ParentSHA = head.Manifest.Checksum()
	}
	return &connectors.Change{Manifest: m, Plan: plan, Before: head.Manifest.Live, Local: tx, Sinks: []connectors.SinkChange{{Sink: sink, Table: "staged", Counts: counts}}}
}

// TestWire cuts the connection at every statement of a commit: before the statement reaches the server,
// and before its answer comes back. At COMMIT the answer that nobody hears is a commit all the same. Each
// time the change is there once, because the run asks, and writes it again only if it is not.
func TestWire(t *testing.T) {
	ctx := context.Background()
	cluster := pgtest.Start(t)
	dsn := cluster.Database(t)
	p := startProxy(t, cluster.Socket())
	config, err := pgx.ParseConfig(dsn)
	must(t, err)
	address := p.listener.Addr().(*net.TCPAddr)
	_, dest := open(t, "host=127.0.0.1 port="+strconv.Itoa(address.Port)+" user=etl sslmode=disable dbname="+config.Database)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)

	row := 0
	commit := func() {
		t.Helper()
		row++
		change := wireChange(t, dest, head, row)
		if err := dest.Commit(ctx, lease, change); err != nil {
			t.Fatalf("row %d: %v", row, err)
		}
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
		if got := texts(t, shell, "SELECT count(*), max(k), (SELECT count(*) FROM etl.manifests), (SELECT seq FROM etl.pipelines) FROM wire")[0]; got[0] != strconv.Itoa(row) || got[1] != strconv.Itoa(row) || got[2] != strconv.Itoa(row) || got[3] != strconv.Itoa(row) {
			t.Fatalf("after row %d there are %v", row, got)
		}
	}
	commit()
	// How many statements a commit has.
	statements := 0
	p.set(func(string) (bool, bool) { statements++; return false, false })
	commit()
	p.set(nil)
	for _, answer := range []bool{false, true} {
		for at := range statements {
			n := 0
			p.set(func(string) (bool, bool) {
				n++
				hit := n == at+1
				return hit && !answer, hit && answer
			})
			commit()
			if cuts := p.set(nil); cuts != 1 {
				t.Errorf("cut %d was made %d times", at, cuts)
			}
		}
	}
	// The answer to COMMIT is swallowed, several times in a row.
	for range 5 {
		swallowed := 0
		p.set(func(s string) (bool, bool) {
			if s == "COMMIT" && swallowed < 2 {
				swallowed++
				return false, true
			}
			return false, false
		})
		commit()
		if p.set(nil) == 0 {
			t.Error("no COMMIT went by")
		}
	}
	// COMMIT never arrives: not committed, and then written again.
	lost := 0
	p.set(func(s string) (bool, bool) {
		if s == "COMMIT" && lost < 2 {
			lost++
			return true, false
		}
		return false, false
	})
	commit()
	p.set(nil)
	t.Logf("%d commits, each of %d statements", row, statements)
}

// TestTerminated: the server ends the session while it writes, again and again.
func TestTerminated(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	stop, done := make(chan struct{}), make(chan struct{})
	ended := 0
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(7 * time.Millisecond):
			}
			var n int
			if shell.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'etl "+lease.Holder+"' AND random() < 0.3").Scan(&n) == nil {
				ended += n
			}
		}
	}()
	rows := 0
	for range 60 {
		rows++
		change := wireChange(t, dest, head, rows)
		must(t, dest.Commit(ctx, lease, change))
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
	}
	close(stop)
	<-done
	if got := texts(t, shell, "SELECT count(*), (SELECT count(*) FROM etl.manifests) FROM wire")[0]; got[0] != strconv.Itoa(rows) || got[1] != strconv.Itoa(rows) {
		t.Errorf("after %d commits there are %v", rows, got)
	}
	t.Logf("%d sessions were ended in %d commits", ended, rows)
}

// TestServerGone: a server that is killed and comes back is waited for; one that stays away is an error
// that says who has to act.
func TestServerGone(t *testing.T) {
	ctx := context.Background()
	cluster := pgtest.Start(t)
	dsn := cluster.Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	for i, signal := range []string{"QUIT", "KILL", "INT"} {
		done := make(chan struct{})
		go func() { defer close(done); cluster.Restart(t, signal) }()
		time.Sleep(20 * time.Millisecond)
		change := wireChange(t, dest, head, i+1)
		must(t, dest.Commit(ctx, lease, change))
		head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
		<-done
	}
	again, err := dest.Head(ctx, "p")
	must(t, err)
	if again.Manifest.Checksum() != head.Manifest.Checksum() {
		t.Errorf("the head is %+v", again)
	}

	dest.patience = 0
	dest.disconnect()
	dest.beat.stop()
	dest.config.Host = "/nowhere"
	var unavailable *connectors.UnavailableError
	if err := dest.Commit(ctx, lease, wireChange(t, dest, head, 9)); !errors.As(err, &unavailable) {
		t.Errorf("of a server that is gone the error is %v", err)
	}
}

// TestForeignLock: a lock that somebody else holds on the table ends in a plain message.
func TestForeignLock(t *testing.T) {
	ctx := context.Background()
	dsn := pgtest.Start(t).Database(t)
	_, dest := open(t, dsn)
	lease, head, err := dest.Take(ctx, "p")
	must(t, err)
	change := wireChange(t, dest, head, 1)
	must(t, dest.Commit(ctx, lease, change))
	head.Fresh, head.Manifest, head.LastBatch = false, change.Manifest, change.Manifest.Batch
	shell, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer shell.Close(ctx)
	_, err = shell.Exec(ctx, "BEGIN; LOCK TABLE wire IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	dest.patience = 0
	err = dest.Commit(ctx, lease, wireChange(t, dest, head, 2))
	var unavailable *connectors.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "another session held a lock on it for longer than 10 seconds") {
		t.Errorf("the error is %v", err)
	}
	_, err = shell.Exec(ctx, "COMMIT")
	must(t, err)
	dest.patience = patience
	must(t, dest.Commit(ctx, lease, wireChange(t, dest, head, 2)))
}
