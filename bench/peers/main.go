// Command peers is asynq's and beanstalkd's program: `peers asynq PORT`, `peers beanstalkd PORT`.
// side.py says what is read from the standard input, and what is answered.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"github.com/hibiken/asynq"
)

const (
	name = "bench"
	// As installed, asynq looks for due tasks every 5 s, and for new ones every second once all queues were empty
	// (server.go: Config). This is for the least lateness; Redis hardly feels it.
	every = 10 * time.Millisecond
	ttr   = time.Minute
)

type order struct {
	Do     string  `json:"do"`
	Jobs   int64   `json:"jobs"`
	Batch  int64   `json:"batch"`
	AtOnce int     `json:"at_once"`
	FromMs int64   `json:"from_ms"`
	ToMs   int64   `json:"to_ms"`
	DueMs  int64   `json:"due_ms"`
	Rate   float64 `json:"rate"`
}

// A side pushes and works.
type side interface {
	// due returns the first moment that a job can be due, from the wanted one on.
	due(now, wanted time.Time) time.Time
	// sender returns what each of those that push at once does with a job.
	sender() func(body string, due time.Time)
	// work calls handle with the body of each job, atOnce at a time, until the returned function is called.
	work(atOnce int, handle func(body []byte)) (stop func())
}

func main() {
	sides := map[string]func(string) side{"asynq": newAsynq, "beanstalkd": newBeanstalkd}
	peer := sides[os.Args[1]]("127.0.0.1:" + os.Args[2])
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked order
		check(json.Unmarshal(lines.Bytes(), &asked))
		if asked.Do == "push" {
			push(peer, asked)
			fmt.Println("{}")
		} else {
			work(peer, asked)
		}
	}
}

// push has as many senders as are asked for; each of them has a batch in flight, a job each.
func push(peer side, asked order) {
	var taken atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range asked.AtOnce {
		send := peer.sender()
		for range asked.Batch {
			all.Add(1)
			go func() {
				defer all.Done()
				for {
					number := taken.Add(1)
					if number > asked.Jobs {
						return
					}
					if asked.Rate > 0 {
						slot := time.Duration(float64(number) / asked.Rate * float64(time.Second))
						time.Sleep(time.Until(began.Add(slot)))
					}
					now := time.Now()
					due := time.UnixMilli(asked.DueMs)
					if asked.DueMs == 0 {
						delay := asked.FromMs + rand.Int64N(asked.ToMs-asked.FromMs+1)
						due = peer.due(now, now.Add(time.Duration(delay)*time.Millisecond))
					}
					send(fmt.Sprintf("%040d", due.UnixMilli()), due)
				}
			}()
		}
	}
	all.Wait()
}

// work says how late each job was once all are done; only then it stops the worker, which takes a while.
func work(peer side, asked order) {
	var mutex sync.Mutex
	late := make([]int64, 0, asked.Jobs)
	done := make(chan struct{})
	stop := peer.work(asked.AtOnce, func(body []byte) {
		due, err := strconv.ParseInt(string(body), 10, 64)
		check(err)
		mutex.Lock()
		defer mutex.Unlock()
		late = append(late, time.Now().UnixMilli()-due)
		if int64(len(late)) == asked.Jobs {
			close(done)
		}
	})
	fmt.Println("{}")
	<-done
	slices.Sort(late)
	told, err := json.Marshal(map[string][]int64{"late_ms": late})
	check(err)
	fmt.Println(string(told))
	stop()
}

type asynqSide struct {
	redis  asynq.RedisClientOpt
	client *asynq.Client
}

func newAsynq(address string) side {
	redis := asynq.RedisClientOpt{Addr: address}
	return asynqSide{redis, asynq.NewClient(redis)}
}

// It drops the fraction of a second of the due time, and would be early.
func (peer asynqSide) due(now, wanted time.Time) time.Time {
	if whole := wanted.Truncate(time.Second); whole.Before(wanted) && wanted.After(now) {
		return whole.Add(time.Second)
	}
	return wanted
}

func (peer asynqSide) sender() func(string, time.Time) {
	return func(body string, due time.Time) {
		_, err := peer.client.Enqueue(asynq.NewTask(name, []byte(body)), asynq.ProcessAt(due))
		check(err)
	}
}

func (peer asynqSide) work(atOnce int, handle func([]byte)) func() {
	server := asynq.NewServer(peer.redis, asynq.Config{
		Concurrency:              atOnce,
		DelayedTaskCheckInterval: every,
		TaskCheckInterval:        every,
		LogLevel:                 asynq.FatalLevel,
	})
	check(server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(task.Payload())
		return nil
	})))
	return server.Shutdown
}

type beanstalkdSide struct{ address string }

func newBeanstalkd(address string) side { return beanstalkdSide{address} }

// Its protocol has delays of whole seconds.
func (peer beanstalkdSide) due(now, wanted time.Time) time.Time {
	return now.Add(wholeSeconds(wanted.Sub(now)))
}

func wholeSeconds(delay time.Duration) time.Duration {
	return (max(0, delay) + time.Second - 1).Truncate(time.Second)
}

func (peer beanstalkdSide) dial() *beanstalk.Conn {
	conn, err := beanstalk.Dial("tcp", peer.address)
	check(err)
	return conn
}

// A connection for each sender; the jobs of its batch are in flight together.
func (peer beanstalkdSide) sender() func(string, time.Time) {
	tube := beanstalk.NewTube(peer.dial(), name)
	return func(body string, due time.Time) {
		_, err := tube.Put([]byte(body), 1024, wholeSeconds(time.Until(due)), ttr)
		check(err)
	}
}

func (peer beanstalkdSide) work(atOnce int, handle func([]byte)) func() {
	var stopped atomic.Bool
	var all sync.WaitGroup
	for range atOnce {
		conn := peer.dial()
		tubes := beanstalk.NewTubeSet(conn, name)
		all.Add(1)
		go func() {
			defer all.Done()
			defer conn.Close()
			for !stopped.Load() {
				id, body, err := tubes.Reserve(time.Second)
				if errors.Is(err, beanstalk.ErrTimeout) {
					continue
				}
				check(err)
				handle(body)
				check(conn.Delete(id))
			}
		}()
	}
	return func() {
		stopped.Store(true)
		all.Wait()
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
