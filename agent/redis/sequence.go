package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/redis/snapshot"
)

// epoch is the period in which a member is primary. It is in the data.
type epoch struct {
	base  uint64 // the number with which it begins
	begin int64  // the position in the stream at which it begins
	start driver.Start
}

const (
	library = "stateful_operator"
	marker  = "-- epoch "

	// epochBits is the size of the steps between bases: more bytes than a primary can write that has no
	// secondary, and is lost.
	epochBits = 40
)

// number returns the sequence of a copy at a position.
func (e epoch) number(offset int64) uint64 {
	return e.base + uint64(max(0, offset-e.begin))
}

// next returns the epoch of a start as primary that begins at a position. Starts from the same copy have
// different bases, the later one the higher.
func (e epoch) next(start driver.Start, offset int64) (epoch, error) {
	steps := start.After(e.start)
	last := e.number(offset) >> epochBits
	if steps < 1 || uint64(steps) > math.MaxUint64>>epochBits-last {
		return epoch{}, fmt.Errorf("epoch %d cannot follow %d", start.Epoch, last)
	}
	return epoch{base: (last + uint64(steps)) << epochBits, begin: offset, start: start}, nil
}

// source returns the library whose source has the epoch.
func (e epoch) source() string {
	return fmt.Sprintf(`#!lua name=%s
%s%d %d %d %d
redis.register_function{function_name='%s_epoch', callback=function() return '%d' end, flags={'no-writes'}}
`, library, marker, e.base, e.begin, e.start.Created, e.start.Epoch, library, e.base)
}

// parseEpoch finds the epoch in the sources of libraries. A copy without one is of another origin.
func parseEpoch(sources []string) (e epoch, found bool, err error) {
	for _, source := range sources {
		if first, _, _ := strings.Cut(source, "\n"); !strings.HasSuffix(first, " name="+library) {
			continue
		}
		_, rest, _ := strings.Cut(source, marker)
		line, _, _ := strings.Cut(rest, "\n")
		if _, err := fmt.Sscanf(line, "%d %d %d %d", &e.base, &e.begin, &e.start.Created, &e.start.Epoch); err != nil {
			return epoch{}, false, fmt.Errorf("library %s has no epoch: %w", library, err)
		}
		return e, true, nil
	}
	return epoch{}, false, nil
}

// Sequence returns the number of this copy. While the server reads its data, it is that of the snapshot.
func (s *Server) Sequence(ctx context.Context) (uint64, error) {
	running, err := servers.Running()
	if err != nil {
		return 0, err
	}
	if !running {
		return s.storedSequence()
	}
	client := s.local()
	defer client.Close()
	found, err := inspect(ctx, client)
	if err != nil {
		return 0, err
	}
	if found.loading {
		return s.storedSequence()
	}
	e, offset, err := current(ctx, client)
	return e.number(offset), err
}

// storedSequence returns the number of the snapshot. It is 0 without one, and above 0 with any data.
func (s *Server) storedSequence() (uint64, error) {
	if err := s.checkFolder(); err != nil {
		return 0, err
	}
	header, err := snapshot.Read(s.data(snapshotFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, driver.Errorf(driver.NotInstalled, "%w", err)
	}
	e, _, err := parseEpoch(header.Functions)
	return max(1, e.number(header.Offset)), err
}

// current returns the epoch of a running server and its position. An epoch can begin between two
// queries, so it is read before and after the position.
func current(ctx context.Context, client *redis.Client) (e epoch, offset int64, err error) {
	before, err := readEpoch(ctx, client)
	for err == nil {
		var found state
		if found, err = inspect(ctx, client); err != nil {
			break
		}
		var after epoch
		if after, err = readEpoch(ctx, client); err != nil || after == before {
			return after, found.offset, err
		}
		before = after
	}
	return epoch{}, 0, err
}

func readEpoch(ctx context.Context, client *redis.Client) (epoch, error) {
	libraries, err := client.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: library, WithCode: true}).Result()
	if err != nil {
		return epoch{}, err
	}
	var sources []string
	for _, l := range libraries {
		sources = append(sources, l.Code)
	}
	e, _, err := parseEpoch(sources)
	return e, err
}

// beginEpoch writes a new epoch into the data of a primary, unless this start has begun one already.
func (s *Server) beginEpoch(ctx context.Context, client *redis.Client) error {
	e, offset, err := current(ctx, client)
	if err != nil {
		return err
	}
	if e.start != s.start {
		if e, err = e.next(s.start, offset); err != nil {
			return err
		}
		if err := load(ctx, client, e.source()); err != nil {
			return fmt.Errorf("begin an epoch: %w", err)
		}
	}
	if err := client.ConfigSet(ctx, "min-replicas-to-write", strconv.Itoa(int(s.config.MinReplicasToWrite))).Err(); err != nil {
		return err
	}
	// The snapshot makes the number durable. Without it, the next one saves it.
	if err := client.Do(ctx, "bgsave", "schedule").Err(); err != nil {
		s.log.Printf("no snapshot was started: %v", err)
	}
	return nil
}

// load loads a library. A server that has too much data, or could not save it, or has no secondary, would
// refuse that as a write.
func load(ctx context.Context, client *redis.Client, source string) error {
	restore := map[string]string{}
	for name, value := range map[string]string{"maxmemory": "0", "stop-writes-on-bgsave-error": "no", "min-replicas-to-write": "0"} {
		former, err := client.ConfigGet(ctx, name).Result()
		if err != nil {
			return err
		}
		restore[name] = former[name]
		if err := client.ConfigSet(ctx, name, value).Err(); err != nil {
			return err
		}
	}
	if err := client.FunctionLoadReplace(ctx, source).Err(); err != nil {
		return err
	}
	for name, value := range restore {
		if err := client.ConfigSet(ctx, name, value).Err(); err != nil {
			return err
		}
	}
	return nil
}
