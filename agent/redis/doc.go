// Package redis runs Redis 7 and 8, and Valkey 7 to 9, as a ReplicatedStatefulSet, in the unmodified
// upstream image.
//
// # Sequence
//
// A server counts the bytes of the stream of writes, and stores that position in its snapshots. The
// position alone is not sufficient: a failed primary may have reached a higher one, with writes that no
// other member has, than its successor with all later writes. So each start as primary begins an epoch
// with a base, which is higher than all numbers of earlier epochs. The number of a copy is the base of
// its epoch and the bytes since that epoch began.
//
// Both are in the data, so that they are exactly as old as it is: in the source of a function, which
// FLUSHALL does not delete.
//
// There is no append-only file: after it has read one, Redis has no position.
//
// # Durability
//
// A write is in the memory of the primary when it returns, and in that of a secondary when WAIT returns.
// A member that is stopped saves all its data. If all members are killed at once, the newest snapshot
// remains, which is at most some seconds old (setting save).
package redis
