// What a transaction pays for a job: a row of our outbox, or an insert of River, in turns: river DSN.
// bench/outbox.py starts it; the database has the outbox already.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	transactions = 800 // of each way in a turn, with one job each
	fewest       = 20  // with many jobs
	turns        = 7
	delay        = 30 * time.Minute
	body         = `{"order": 1001, "customer": 7, "reason": "not paid in time"}`
	order        = "INSERT INTO orders (state) VALUES ('unpaid')"
	rows         = `INSERT INTO delay_queue_outbox (topic, id, body, delay, options)
		SELECT 'order-close', id, $2, $3, '{"ttr": 60, "tags": ["order:1001"]}' FROM unnest($1::text[]) id`
)

// CloseOrder is the job, with the same fields as body.
type CloseOrder struct {
	Order    int    `json:"order"`
	Customer int    `json:"customer"`
	Reason   string `json:"reason"`
}

// Kind is River's name for it.
func (CloseOrder) Kind() string { return "order-close" }

type way struct {
	name   string
	insert func(tx pgx.Tx, jobs int) error
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Args[1])
	check(err)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	check(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	check(err)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	check(err)
	number := 0
	ways := []way{
		{"the order alone", func(pgx.Tx, int) error { return nil }},
		{"outbox", func(tx pgx.Tx, jobs int) error {
			ids := make([]string, jobs)
			for place := range ids {
				number++
				ids[place] = fmt.Sprint("job-", number)
			}
			_, err := tx.Exec(ctx, rows, ids, body, delay.Seconds())
			return err
		}},
		{"River", func(tx pgx.Tx, jobs int) error {
			if jobs == 1 {
				params := param()
				_, err := client.InsertTx(ctx, tx, params.Args, params.InsertOpts)
				return err
			}
			_, err := client.InsertManyTx(ctx, tx, params(jobs))
			return err
		}},
		{"River, InsertManyFast", func(tx pgx.Tx, jobs int) error {
			_, err := client.InsertManyFastTx(ctx, tx, params(jobs))
			return err
		}},
	}
	for _, jobs := range []int{1, 100} {
		found := make([][]time.Duration, len(ways))
		for range turns {
			for place, each := range ways {
				found[place] = append(found[place], median(ctx, pool, each, jobs))
			}
		}
		for place, each := range ways {
			fmt.Printf("%d jobs, %s: %d us\n", jobs, each.name, slices.Min(found[place]).Microseconds())
		}
	}
}

// median is how long a transaction takes in the middle.
func median(ctx context.Context, pool *pgxpool.Pool, each way, jobs int) time.Duration {
	took := make([]time.Duration, max(transactions/jobs, fewest))
	for place := range took {
		began := time.Now()
		tx, err := pool.Begin(ctx)
		check(err)
		_, err = tx.Exec(ctx, order)
		check(err)
		check(each.insert(tx, jobs))
		check(tx.Commit(ctx))
		took[place] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func params(jobs int) []river.InsertManyParams {
	made := make([]river.InsertManyParams, jobs)
	for place := range made {
		made[place] = param()
	}
	return made
}

func param() river.InsertManyParams {
	opts := river.InsertOpts{ScheduledAt: time.Now().Add(delay), Tags: []string{"order_1001"}}
	return river.InsertManyParams{Args: CloseOrder{1001, 7, "not paid in time"}, InsertOpts: &opts}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
