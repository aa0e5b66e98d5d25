// Closes orders that are not paid in time. Go 1.18 or newer, the standard library only.
//
//	go run orders.go place ORDER SECONDS   an order, closed after SECONDS unless it is paid
//	go run orders.go paid ORDER            it is paid: cancel the job
//	go run orders.go work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

const ttrS = 60 // a worker that is silent for a minute is dead: another one gets the job

type fields map[string]any

// job is what /pop answers.
type job struct {
	ID, Body, Receipt string
	Attempt           int
}

// queueError is what the queue says no with; its codes are in docs/api.md.
type queueError struct {
	Code    int
	Message string
}

func (e queueError) Error() string { return e.Message }

var client = http.Client{Timeout: 200 * time.Second} // longer than /pop waits

func server() string {
	if url := os.Getenv("DELAYQUEUE_URL"); url != "" {
		return url
	}
	return "http://localhost:9277"
}

// queue calls an endpoint and decodes the answer's data into data, which may be nil.
func queue(verb string, request fields, data any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	post, err := http.NewRequest("POST", server()+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if token := os.Getenv("DELAYQUEUE_TOKEN"); token != "" { // if the server requires one
		post.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Code    *int
		Message string
		Data    json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Code == nil {
		return errors.New("not an answer of the queue: HTTP status " + response.Status)
	}
	if *answer.Code != 0 {
		return queueError{*answer.Code, answer.Message}
	}
	if data == nil {
		return nil
	}
	return json.Unmarshal(answer.Data, data)
}

func place(order, seconds string) error {
	delay, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return err
	}
	body, err := json.Marshal(fields{"order": order})
	if err != nil {
		return err
	}
	return queue("push", fields{
		"topic": "order-close",
		"id":    "close-" + order, // an id is one job: pushing it again replaces it
		"delay": delay,
		"ttr":   ttrS,
		"body":  string(body),
		"tags":  []string{"order:" + order},                     // what /cancel asks for
		"retry": fields{"delays": []string{"10s", "1m", "10m"}}, // after failures; then it is buried
	}, nil)
}

func paid(order string) error {
	var cancelled struct{ Count int }
	if err := queue("cancel", fields{"tag": "order:" + order}, &cancelled); err != nil {
		return err
	}
	fmt.Println("cancelled", cancelled.Count)
	return nil
}

// work handles that many jobs, or jobs forever if the number is negative.
func work(jobs int) {
	for jobs != 0 {
		var popped *job
		if err := queue("pop", fields{"topic": "order-close"}, &popped); err != nil {
			log.Print(err)
			time.Sleep(time.Second) // the server is being restarted
			continue
		}
		if popped == nil || popped.Receipt == "" {
			time.Sleep(100 * time.Millisecond) // nothing was due for three minutes
			continue
		}
		handle(*popped)
		jobs--
	}
}

func handle(j job) {
	verb, deadline := "finish", time.Now().Add(ttrS*time.Second)
	message, err := try(closeOrder, j.Body)
	report := fields{"id": j.ID, "receipt": j.Receipt}
	if err != nil {
		verb, message = "release", err.Error()
		report["fallback"] = 10 // the schedule says when it is delivered again; without one, in ten seconds
	}
	report["message"] = message
	for first := true; first || time.Now().Before(deadline); first = false {
		err = queue(verb, report, nil)
		var refused queueError
		if errors.As(err, &refused) && refused.Code != 6 && refused.Code != 10 {
			message = err.Error() // 2: it has ended meanwhile; 4: we were too slow, another worker has it
		} else if err != nil {
			log.Print(err) // no answer, or code 6: nobody knows whether it was done; 10: too busy
			time.Sleep(time.Second)
			continue
		}
		break
	}
	fmt.Printf("%s: %s\n", j.ID, message)
}

// try calls the handler; a panic is its error, too, so that the queue gets to know it.
func try(handler func(string) (string, error), body string) (message string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return handler(body)
}

// closeOrder is yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm.
func closeOrder(body string) (string, error) {
	var closing struct{ Order string }
	if err := json.Unmarshal([]byte(body), &closing); err != nil {
		return "", err
	}
	if _, err := strconv.Atoi(closing.Order); err != nil {
		return "", fmt.Errorf("no order %s", closing.Order)
	}
	return "closed order " + closing.Order, nil
}

func main() {
	arguments := append(os.Args[1:], "", "", "")
	var err error
	switch {
	case arguments[0] == "place" && arguments[2] != "":
		err = place(arguments[1], arguments[2])
	case arguments[0] == "paid" && arguments[1] != "":
		err = paid(arguments[1])
	case arguments[0] == "work":
		jobs := -1
		if arguments[1] != "" {
			jobs, err = strconv.Atoi(arguments[1])
		}
		if err == nil {
			work(jobs)
		}
	default:
		err = errors.New("the first lines of this file say how to use it")
	}
	if err != nil {
		log.Fatal(err)
	}
}
