"""The world of a deterministic simulation: the whole broker in one OS process, on virtual time, from one seed.

    world = World(seed, Shape())
    result = world.run(scenario(world))       # a coroutine; runs to its end on virtual time, gives what it returns
    world.digest()                            # hash of all events so far: the same seed has the same digest

`World(seed, shape, limit=600.0)` may be made outside of any loop, one at a time, and runs one scenario. `run` raises
`Deadlock` when nothing can ever happen any more, `OutOfTime` when the scenario is not done after `limit` virtual
seconds, and whatever the scenario raises. It patches clocks and randomness while it runs, and restores them.

    world.random                              # random.Random for the scenario, apart from the scheduler's own
    world.time()                              # virtual seconds since the beginning, which `asyncio.sleep` waits for
    world.complaints                          # what services logged at error level, and tasks that failed:
                                              # [Complaint(time, process, text, failure)]
    with world.host("client-1"): …            # tasks and connections begun inside belong to that host, which is made
                                              # when first named; a client should be one task started inside

The scenario itself runs on a host "scenario" that no fault reaches. Connections of clients that shall be cut, torn and
slowed must be opened on a host of their own.

    cluster = world.cluster
    await cluster.start()                     # returns when clients can connect; user guest, password guest
    await cluster.create_virtual_host(name)   # as `hopline vhosts add`; "/" is there from the beginning
    cluster.policy(host, name, pattern, says) # as `hopline policies set`; clears it where it says {}
    cluster.processes                         # names of all: store-1, nats-1, router-1 …, queue-1 …, gateway-1 …,
                                              # and mgmt-1 with Shape.filing
    cluster.amqp_addresses                    # [(host, port)] of the gateways, dead or alive: inside the world
                                              # asyncio.open_connection(host, port) connects, or raises OSError

Faults. All are plain calls that begin the fault now; those with `seconds` end by themselves. Names are processes, or
hosts of clients where two ends are named. A fault that makes no sense at the moment (killing the dead) does nothing.

    cluster.kill(name)                        # SIGKILL, at any of its next awaits; stays dead until start_again or heal
    cluster.start_again(name)                 # after kill and stop
    cluster.stop(name)                        # SIGTERM: service.stop(), hands over; stays down as after kill
    cluster.pause(name, seconds)              # stands still (SIGSTOP): then all that is due
    cluster.starve(name, seconds)             # gets little of the CPU: each turn of its loop takes long
    cluster.cut(a, b, seconds)                # nothing arrives and neither is told; later it arrives, or is reset
    cluster.deafen(a, b, seconds)             # as cut, from b to a alone: b hears a
    cluster.tear(a, b)                        # connections between the two break now, perhaps after part of a frame
    cluster.slow(a, b, seconds)               # delays a hundred times as long
    cluster.disk_full(seconds)                # every commit fails, nothing is written
    cluster.disk_low(seconds)                 # hardly any room for messages: the store lets them wait
    cluster.disk_fails(seconds)               # commits fail, some of them after they were written
    cluster.disk_slow(seconds)
    cluster.jump_clock(name, seconds)         # wall clock of one process, either way
    cluster.suspend(seconds)                  # the machine: all processes of the cluster; timers stand still, boot
                                              # time and wall clock go on
    cluster.move(partition, queue_process)    # as `hopline partitions move`, in the background; gives the task
    cluster.ambush(method, moment, hold, spring)
                                              # spring() when a gRPC call of that method is next "asked" for, about to
                                              # be "answered", or has "received" more; it goes on `hold` seconds later
    cluster.add_queue_process()               # gives its name; it starts in the background
    cluster.stop_for_good(name)               # stopped, and not started by heal (scaling in)

    await cluster.heal()                      # ends all faults, starts what is dead, returns when everything serves
    cluster.is_running(name)                  # False for dead and stopped ones
    cluster.ledger()                          # what reached NATS: .rows() gives them one by one (ledger.py)
    cluster.unfiled()                         # how many batches of it are not filed yet, with Shape.filing
    cluster.memory_accounts()                 # {queue process: bytes accounted for}, of those that run
"""

from __future__ import annotations

from tests.simulation.world.ledger import Ledger, Row
from tests.simulation.world.loop import Deadlock, OutOfTime
from tests.simulation.world.shape import Shape
from tests.simulation.world.world import Complaint, World

__all__ = ["Complaint", "Deadlock", "Ledger", "OutOfTime", "Row", "Shape", "World"]
