package pgtest

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Cut is where the proxy cuts a connection at a message to the server.
type Cut int

const (
	Not    Cut = iota
	Before     // the message does not reach the server
	Inside     // half of it does
	After      // it does, and the answer does not come back
)

// Message is one of a client to the server: Q and P have the text of a statement, d is a piece of a COPY.
type Message struct {
	Kind byte
	Text string
}

// Proxy stands between a run and the server, and knows the messages on the wire.
type Proxy struct {
	listener net.Listener
	socket   string

	mu    sync.Mutex
	away  bool
	fault func(Message) Cut
	cuts  int
	conns []net.Conn
	wg    sync.WaitGroup
}

// Proxy starts one in front of the cluster.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, socket: c.Socket()}
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

// DSN is that of a database of the cluster, through the proxy.
func (p *Proxy) DSN(t testing.TB, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return "host=127.0.0.1 port=" + strconv.Itoa(p.listener.Addr().(*net.TCPAddr).Port) + " user=etl sslmode=disable dbname=" + config.Database
}

// Set gives the proxy its next fault, which is asked about every message, and tells how often the one before came.
func (p *Proxy) Set(fault func(Message) Cut) (cuts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cuts = p.cuts
	p.fault, p.cuts = fault, 0
	return cuts
}

// Away lets the server look as if it was not there, or there again.
func (p *Proxy) Away(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away = away; away {
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
	}
}

func (p *Proxy) hit(m Message) Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		return Not
	}
	cut := p.fault(m)
	if cut != Not {
		p.cuts++
	}
	return cut
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("unix", p.socket)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	away := p.away
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	closeBoth := func() { _ = client.Close(); _ = server.Close() }
	if away {
		closeBoth()
		return
	}
	silent, done := make(chan struct{}), make(chan struct{})
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
	if err := passStartup(server, client); err != nil {
		return
	}
	mute := false
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		message := append(head, body...)
		if m := (Message{head[0], textOf(head[0], body)}); m.Text != "" || m.Kind == 'd' {
			switch p.hit(m) {
			case Before:
				return
			case Inside:
				_, _ = server.Write(message[:(len(message)+1)/2])
				return
			case After:
				if !mute {
					close(silent)
				}
				mute = true
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// passStartup passes the first packet on, which has no kind.
func passStartup(to io.Writer, from io.Reader) error {
	size := make([]byte, 4)
	if _, err := io.ReadFull(from, size); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(size)-4)
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	_, err := to.Write(append(size, body...))
	return err
}

// textOf is the statement of a Query or Parse message.
func textOf(kind byte, body []byte) string {
	text := ""
	switch kind {
	case 'Q':
		text = string(body)
	case 'P': // the name comes first
		_, text, _ = strings.Cut(string(body), "\x00")
	}
	text, _, _ = strings.Cut(text, "\x00")
	return text
}
