package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"lockstep/connectors"
	"lockstep/connectors/protocol"
)

const (
	leaseTTL  = 30 * time.Second
	leaseBeat = 5 * time.Second
)

// leaseRow is a row of etl.leases.
type leaseRow struct {
	holder, host, bootID, pidSpace string
	pid, started                   int64
	expired                        bool    // by the clock of the database
	age                            float64 // seconds since it was renewed
}

func (d *Destination) leaseRow(ctx context.Context, tx *tx, pipeline string) (row leaseRow, there bool, err error) {
	err = tx.row(ctx, sql("lease"), []any{pipeline}, &row.holder, &row.host, &row.bootID, &row.pidSpace, &row.pid, &row.started, &row.expired, &row.age)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, false, nil
	}
	return row, err == nil, err
}

// dead tells whether the holder was a process of this machine, boot and pid namespace that is not there
// any more. About any other one nothing is known here.
func (r leaseRow) dead() bool {
	here := self()
	if r.host != here.host || r.bootID == "" || r.bootID != here.bootID || r.pidSpace == "" || r.pidSpace != here.pidSpace {
		return false
	}
	return processStarted(r.pid) != r.started
}

func (r leaseRow) by() string {
	return fmt.Sprintf("another run (pid %d on %s, last sign of life %.0f s ago)", r.pid, r.host, r.age)
}

// Take makes this run the only writer of a pipeline; how is in connectors/protocol.
func (d *Destination) Take(ctx context.Context, pipeline string) (connectors.Lease, connectors.Head, error) {
	return protocol.Take(ctx, &taking{d: d, pipeline: pipeline}, connectors.Lease{Pipeline: pipeline, Holder: uuid.NewString()})
}

// taking is a run on its way to a lease. It implements protocol.Taking.
type taking struct {
	d        *Destination
	pipeline string
	tx       *tx // of Once
}

func (t *taking) Head(ctx context.Context) (connectors.Head, error) { return t.d.Head(ctx, t.pipeline) }

func (t *taking) Once(ctx context.Context, fn func() error) error {
	return t.d.inTx(ctx, "take the lease of pipeline "+t.pipeline, func(tx *tx) error {
		t.tx = tx
		return fn()
	})
}

func (t *taking) Holder(ctx context.Context) (holder string, gone bool, err error) {
	row, there, err := t.d.leaseRow(ctx, t.tx, t.pipeline)
	if err != nil || !there {
		return "", false, err
	}
	return row.holder, row.dead() || t.d.beat.holds(t.pipeline, row.holder), nil
}

func (t *taking) Enter(ctx context.Context, lease connectors.Lease, over string) (bool, error) {
	if over == "" {
		over = uuid.Nil.String()
	}
	me := self()
	n, err := t.tx.count(ctx, sql("take-lease"), t.pipeline, lease.Holder, me.host, me.bootID, me.pidSpace, me.pid, me.started, leaseTTL.Seconds(), over)
	return n > 0, err
}

func (t *taking) Held(ctx context.Context) error {
	row, there, err := t.d.leaseRow(ctx, t.tx, t.pipeline)
	if err != nil {
		return err
	}
	held := &connectors.HeldError{What: "pipeline " + t.pipeline + " in " + t.d.name}
	if there {
		held.By = row.by()
	}
	return held
}

func (t *taking) Bump(ctx context.Context, replaced string) (fence int64, err error) {
	if replaced != "" {
		// A transaction that it still has open cannot be committed any more, but holds rows.
		if err := t.tx.exec(ctx, sql("terminate-sessions"), applicationName(replaced)); err != nil {
			return 0, err
		}
		t.d.replaced[t.pipeline] = replaced
		defer t.d.unblock(ctx, t.tx, replaced)()
	}
	if err := t.tx.exec(ctx, sql("insert-pipeline"), t.pipeline); err != nil {
		return 0, err
	}
	err = t.tx.row(ctx, sql("bump-fence"), []any{t.pipeline, t.d.file}, &fence)
	return fence, err
}

func (t *taking) Keep(lease connectors.Lease) { t.d.beat.add(lease) }

// unblock looks, until it is stopped, whether the session of the run that was taken over keeps this one
// waiting: stalled between its last statement and COMMIT it holds the row of the pipeline. Only a session
// that blocks this one and carries the old holder's name is ended.
func (d *Destination) unblock(ctx context.Context, tx *tx, holder string) (stop func()) {
	var backend int
	if err := tx.row(ctx, "SELECT pg_backend_pid()", nil, &backend); err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
			conn, err := d.connect(ctx)
			if err != nil {
				continue
			}
			_, _ = conn.Exec(ctx, sql("terminate-blocker"), backend, applicationName(holder))
			closing, end := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = conn.Close(closing)
			end()
		}
	}()
	return func() { cancel(); <-done }
}

// endReplaced ends the sessions of the run that this one has taken a lease over from: one that woke up and stalled
// again holds rows that are waited for. Nothing of it can be committed.
func (d *Destination) endReplaced(ctx context.Context, pipeline string) {
	replaced := d.replaced[pipeline]
	if replaced == "" {
		return
	}
	if conn, err := d.connection(ctx); err == nil {
		_, _ = conn.Exec(ctx, sql("terminate-sessions"), applicationName(replaced)) // the next try shows
	}
}

// Release gives the lease back; one that was taken over is left alone. It does not wait for a server that is away: a
// lease that stays ends by itself, and this process may take it again before.
func (d *Destination) Release(ctx context.Context, lease connectors.Lease) error {
	d.beat.drop(lease)
	defer func(p time.Duration) { d.patience = p }(d.patience)
	d.patience = min(d.patience, time.Second)
	err := d.inTx(ctx, "release the lease of pipeline "+lease.Pipeline, func(tx *tx) error {
		return tx.exec(ctx, sql("release-lease"), lease.Pipeline, lease.Holder)
	})
	if err != nil {
		d.beat.leave(lease)
	}
	return err
}

// heartbeat renews the leases of this process on a connection of its own, so that a long statement of
// the run does not look like death.
type heartbeat struct {
	d *Destination

	mu      sync.Mutex
	leases  []connectors.Lease
	renewed map[string]time.Time // by holder
	lost    map[string]bool      // by holder: taken over
	left    map[string]bool      // by holder: not renewed any more, and not given back
	cancel  context.CancelFunc
	done    chan struct{}
}

func (h *heartbeat) held() []connectors.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]connectors.Lease(nil), h.leases...)
}

// leave notes a lease that could not be given back.
func (h *heartbeat) leave(lease connectors.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == nil {
		h.left = map[string]bool{}
	}
	h.left[lease.Holder] = true
}

// holds tells whether this process itself took a lease.
func (h *heartbeat) holds(pipeline, holder string) bool {
	h.mu.Lock()
	left := h.left[holder]
	h.mu.Unlock()
	if left {
		return true
	}
	for _, l := range h.held() {
		if l.Pipeline == pipeline && l.Holder == holder {
			return true
		}
	}
	return false
}

// writes tells whether this process has the lease of a pipeline.
func (h *heartbeat) writes(pipeline string) bool {
	for _, l := range h.held() {
		if l.Pipeline == pipeline {
			return true
		}
	}
	return false
}

func (h *heartbeat) add(lease connectors.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, lease)
	if h.renewed == nil {
		h.renewed, h.lost = map[string]time.Time{}, map[string]bool{}
	}
	h.renewed[lease.Holder] = time.Now()
	if h.cancel == nil {
		var ctx context.Context
		ctx, h.cancel = context.WithCancel(context.Background())
		h.done = make(chan struct{})
		go h.run(ctx, h.done)
	}
}

func (h *heartbeat) drop(lease connectors.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range h.leases {
		if l.Holder == lease.Holder {
			h.leases = append(h.leases[:i:i], h.leases[i+1:]...)
			break
		}
	}
}

func (h *heartbeat) stop() {
	h.mu.Lock()
	cancel, done := h.cancel, h.done
	h.cancel, h.leases = nil, nil
	h.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// check is asked before a commit: a run whose lease ended, or is another's, must not go on.
func (h *heartbeat) check(lease connectors.Lease) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost[lease.Holder] {
		return &connectors.FencedError{Pipeline: lease.Pipeline}
	}
	if renewed, known := h.renewed[lease.Holder]; known && time.Since(renewed) > leaseTTL {
		return &connectors.UnavailableError{What: h.d.name, Passes: true,
			Err:  fmt.Errorf("the lease of pipeline %s could not be renewed for %.0f seconds, and has ended", lease.Pipeline, leaseTTL.Seconds()),
			Hint: "nothing was written. Run again when the server can be reached"}
	}
	return nil
}

func (h *heartbeat) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			closing, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = conn.Close(closing)
		}
	}()
	tick := time.NewTicker(leaseBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		once, cancel := context.WithTimeout(ctx, leaseBeat)
		if conn == nil || conn.IsClosed() {
			conn, _ = h.d.connect(once) // the next beat tries again
		}
		if conn != nil {
			h.renew(once, conn)
		}
		cancel()
	}
}

func (h *heartbeat) renew(ctx context.Context, conn *pgx.Conn) {
	for _, lease := range h.held() {
		asked := time.Now()
		tag, err := conn.Exec(ctx, sql("renew-lease"), lease.Pipeline, lease.Holder, leaseTTL.Seconds())
		if err != nil {
			return
		}
		h.mu.Lock()
		if tag.RowsAffected() == 1 {
			h.renewed[lease.Holder] = asked
		} else {
			h.lost[lease.Holder] = true
		}
		h.mu.Unlock()
	}
}

// process is what tells this process from all others.
type process struct {
	host, bootID, pidSpace string
	pid, started           int64
}

func self() process {
	pid := int64(os.Getpid())
	p := process{host: "unknown", pid: pid, started: processStarted(pid)}
	if name, err := os.Hostname(); err == nil {
		p.host = name
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.bootID = strings.TrimSpace(string(id))
	}
	p.pidSpace, _ = os.Readlink("/proc/self/ns/pid")
	return p
}

// processStarted is when a process started, in clock ticks since the boot; 0 when there is none.
func processStarted(pid int64) int64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in brackets may hold anything; the fields after it are fixed.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	n, _ := strconv.ParseInt(fields[19], 10, 64)
	return n
}
