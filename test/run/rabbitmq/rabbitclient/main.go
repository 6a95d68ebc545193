// Command client writes entries to a RabbitMQ. See package writer. RABBITMQ_PASSWORD is the password of admin.
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/stateful-operator/stateful-operator/test/run/writer"
)

func main() { writer.Main(open) }

// queue is a quorum queue. Entries that are read return to it any number of times.
const queue = "entries"

var arguments = amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(-1)}

// heartbeat is the interval after which a connection to a lost member is detected: declarations have no limit.
const heartbeat = 2 * time.Second

// readLimit is the time in which all entries are read.
const readLimit = time.Minute

// server is a RabbitMQ. Each entry has a separate message.
type server struct {
	address    string
	connection *amqp.Connection
	channel    *amqp.Channel
	found      map[int]bool // the entries in the queue, after the first read
	most       int          // the max number of messages that were ready to be read
}

func open(address string) (writer.Database, error) { return &server{address: address}, nil }

func (s *server) connected() (*amqp.Channel, error) {
	if s.channel != nil {
		return s.channel, nil
	}
	var err error
	s.connection, err = amqp.DialConfig("amqp://"+s.address+"/", amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "admin", Password: os.Getenv("RABBITMQ_PASSWORD")}}, Vhost: "/", Dial: amqp.DefaultDial(writer.TryFor),
		Heartbeat: heartbeat,
	})
	if err != nil {
		return nil, err
	}
	channel, err := s.connection.Channel()
	if err != nil {
		return nil, err
	}
	if _, err := channel.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		return nil, err
	}
	if err := channel.Confirm(false); err != nil {
		return nil, err
	}
	s.channel = channel
	return channel, nil
}

// Put writes an entry. It is acknowledged when a majority has it.
func (s *server) Put(ctx context.Context, n int) (acknowledged bool, err error) {
	channel, err := s.connected()
	if err != nil {
		return false, err
	}
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(strconv.Itoa(n))}
	confirmation, err := channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, message)
	if err != nil {
		return false, err
	}
	return confirmation.WaitContext(ctx)
}

// Has reads the whole queue once, because a queue cannot be asked for a message.
func (s *server) Has(_ context.Context, n int) (bool, error) {
	if s.found == nil {
		found, err := s.read()
		if err != nil {
			return false, err
		}
		s.found = found
	}
	return s.found[n], nil
}

// prefetch is the number of messages that a consumer gets without an acknowledgment. The server limits it.
const prefetch = 1000

// read returns the entries in the queue, and leaves them there.
func (s *server) read() (map[int]bool, error) {
	channel, err := s.connected()
	if err != nil {
		return nil, err
	}
	state, err := channel.QueueDeclarePassive(queue, true, false, false, false, arguments)
	if err != nil {
		return nil, err
	}
	if s.most = max(s.most, state.Messages); state.Messages < s.most {
		return nil, errors.New("messages of an earlier read have not returned to the queue yet")
	}
	messages := make(chan amqp.Delivery)
	ended := make(chan struct{})
	defer close(ended)
	for range state.Messages/prefetch + 1 {
		if err := s.consume(messages, ended); err != nil {
			return nil, err
		}
	}
	found, deadline := map[int]bool{}, time.After(readLimit)
	for range state.Messages {
		select {
		case m := <-messages:
			n, err := strconv.Atoi(string(m.Body))
			if err != nil {
				return nil, err
			}
			found[n] = true
		case <-deadline:
			return nil, errors.New("not all entries were delivered")
		}
	}
	return found, nil
}

// consume sends messages to a channel, until another one is closed or the connection ends.
func (s *server) consume(messages chan<- amqp.Delivery, ended <-chan struct{}) error {
	channel, err := s.connection.Channel()
	if err != nil {
		return err
	}
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return err
	}
	own, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for m := range own {
			select {
			case messages <- m:
			case <-ended:
			}
		}
	}()
	return nil
}

// Close ends the connection, so that the next one can reach another member.
func (s *server) Close() {
	if s.connection != nil {
		_ = s.connection.CloseDeadline(time.Now().Add(writer.TryFor)) // it is usually broken
	}
	s.connection, s.channel = nil, nil
}
