// What a client can do, with go-beanstalk: with_go_beanstalk HOST PORT TUBE
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

const ttr = 60 * time.Second

var name = os.Args[3]

// client is a connection, and the tubes that it reserves from.
type client struct {
	*beanstalk.Conn
	tube, other *beanstalk.Tube
	both        *beanstalk.TubeSet
}

func dial() client {
	conn, err := beanstalk.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	must(err)
	return client{
		conn,
		beanstalk.NewTube(conn, name),
		beanstalk.NewTube(conn, name+".other"),
		beanstalk.NewTubeSet(conn, name, name+".other"),
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func put(tube *beanstalk.Tube, body string, priority uint32, delay, ttr time.Duration) {
	_, err := tube.Put([]byte(body), priority, delay, ttr)
	must(err)
}

func reserve(from client, timeout time.Duration) (uint64, []byte) {
	id, body, err := from.both.Reserve(timeout)
	must(err)
	return id, body
}

func counts(queue client, id uint64) string {
	stats, err := queue.StatsJob(id)
	must(err)
	var words []string
	for _, name := range []string{"state", "pri", "reserves", "releases", "buries", "kicks", "timeouts"} {
		words = append(words, name+" "+stats[name])
	}
	return strings.Join(words, " ")
}

func say(err, expected error, words string) {
	if !errors.Is(err, expected) {
		panic(fmt.Sprint(words, ": ", err))
	}
	fmt.Println(words)
}

func main() {
	queue := dial()
	put(queue.tube, "late", 30, 0, ttr)
	put(queue.tube, "soon", 10, 0, ttr)
	put(queue.tube, "next", 20, 0, ttr)
	put(queue.tube, "asleep", 0, 1000*time.Second, ttr)
	stats, err := queue.tube.Stats()
	must(err)
	fmt.Printf("ready %s, of them urgent %s, delayed %s\n",
		stats["current-jobs-ready"], stats["current-jobs-urgent"], stats["current-jobs-delayed"])

	id, body := reserve(queue, 0)
	fmt.Printf("%s\n", body)
	must(queue.Delete(id))
	id, body = reserve(queue, 0)
	fmt.Printf("%s\n", body)
	must(queue.Release(id, 40, 0))
	id, body = reserve(queue, 0)
	fmt.Printf("%s\n", body)
	must(queue.Bury(id, 50))

	_, buried, err := queue.tube.PeekBuried()
	must(err)
	_, ready, err := queue.tube.PeekReady()
	must(err)
	_, delayed, err := queue.tube.PeekDelayed()
	must(err)
	fmt.Printf("buried %s, ready %s, delayed %s\n", buried, ready, delayed)
	kicked, err := queue.tube.Kick(10)
	must(err)
	fmt.Printf("kicked %d\n", kicked)
	id, body = reserve(queue, 0)
	fmt.Printf("%s: %s\n", body, counts(queue, id))
	must(queue.Delete(id))
	id, body = reserve(queue, 0)
	must(queue.Touch(id))
	fmt.Printf("%s: %s\n", body, counts(queue, id))
	must(queue.Delete(id))
	say(queue.Delete(id), beanstalk.ErrNotFound, "deleted once")
	_, _, err = queue.both.Reserve(0)
	say(err, beanstalk.ErrTimeout, "nothing is ready")

	binary := make([]byte, 256, 258)
	for i := range binary {
		binary[i] = byte(i)
	}
	binary = append(binary, "\r\n"...)
	put(queue.tube, string(binary), 0, 0, ttr)
	id, body = reserve(queue, 0)
	if !bytes.Equal(body, binary) {
		panic(body)
	}
	fmt.Printf("%d bytes as they were\n", len(body))
	must(queue.Delete(id))
	_, err = queue.tube.Put(make([]byte, 65_536), 0, 0, ttr)
	say(err, beanstalk.ErrJobTooBig, "too big")

	put(queue.tube, "of this tube", 5, 0, ttr)
	put(queue.other, "of the other tube", 4, 0, ttr)
	for i := 0; i < 2; i++ {
		id, body = reserve(queue, 0)
		fmt.Printf("%s\n", body)
		must(queue.Delete(id))
	}

	must(queue.tube.Pause(1000 * time.Second))
	put(queue.tube, "paused", 0, time.Second, ttr)
	_, _, err = queue.both.Reserve(0)
	say(err, beanstalk.ErrTimeout, "nothing while paused")
	must(queue.tube.Pause(time.Second))
	id, body = reserve(queue, 20*time.Second)
	fmt.Printf("%s\n", body)
	must(queue.Delete(id))
	_, err = queue.tube.Kick(1)
	must(err)
	id, body = reserve(queue, 0)
	fmt.Printf("%s\n", body)
	must(queue.Delete(id))

	put(queue.tube, "slow", 60, 0, 3*time.Second)
	reserve(queue, 0)
	_, _, err = queue.both.Reserve(20 * time.Second)
	say(err, beanstalk.ErrDeadline, "hurry")
	time.Sleep(1200 * time.Millisecond)
	_, err = queue.Stats() // a nudge: beanstalkd 1.12 sometimes misses that a time to run is over until its holder sends a command
	must(err)
	other := dial()
	id, body = reserve(other, 20*time.Second)
	fmt.Printf("%s: %s\n", body, counts(queue, id))
	must(other.Close())
	id, body = reserve(queue, 20*time.Second)
	fmt.Printf("%s: %s\n", body, counts(queue, id))
	must(queue.Delete(id))
}
