/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca server: one HCA and the machine that uses it, over one socket.
 *
 * The server is the engine behind vfio-user: a machine of stock QEMU connects
 * to the socket and finds a PCI function there. This is the front end, beside
 * the device in QEMU (../qhca.c), and as thin.
 *
 * All of the server is one thread, so an engine is never called twice at a
 * time. A callback only notes what is to be done; the loop in main.c does it.
 */
#ifndef QHCA_SERVER_HCA_H
#define QHCA_SERVER_HCA_H

#include <glib.h>
#include <poll.h>
#include <time.h>
#include <libvfio-user.h>

#include "../common/capture.h"
#include "../common/host.h"
#include "memory.h"
#include "port.h"

/*
 * How long a turn of an HCA is; nothing more begins then. It can take thousands
 * of accesses to memory, each of which the host may have to provide first.
 */
#define HCA_TURN_NS     500000u

/* struct hca_messages - how many messages there may be; see log.c */
struct hca_messages {
    uint64_t paid;              /* for messages up to this time */
    unsigned left_out;
};

/*
 * struct hca - an HCA
 * @host: its engine; first, as the engine's callbacks are handed this
 * @name: names it in messages and on the control socket
 * @initial: configuration space as after power-on
 * @attached: a machine is connected
 * @bad: the connection is being closed
 * @attacher: a thread that waits for the first message of a connection; while
 *            it is @attaching; it reports by @attach_fd, with @error
 * @closer: a thread for close(), which has @closing yet to do
 * @unmapper: a thread for munmap(), which has so much @unmapping yet to do
 * @partial: a message has begun to arrive, and has to be there by this time
 * @look: when to look for the rest of it; 0: the socket is polled
 * @until: its turn ends
 * @capture: of the frames that the port sends to itself
 * @rung: when doorbells were last found in memory
 * @awake: the guest relies on that the server looks for them
 * @messages: allowances of hca_log() and of hca_note()
 * @dm: memory of the device that the machine can map, or NULL
 * @dm_used: a former machine may still map the device memory
 */
struct hca {
    struct qhca_host host;
    char *name, *socket;
    struct qhca_props props;
    uint8_t mac[6];
    char *faults;
    vfu_ctx_t *vfu;
    vfu_pci_config_space_t *config;
    uint8_t initial[PCI_CFG_SPACE_EXP_SIZE];
    bool attached, bad, awake;
    GThreadPool *attacher, *closer, *unmapper;
    int attaching, attach_fd, error;
    int closing, unmapping;
    uint64_t partial, look;
    uint64_t until, rung;
    struct hca_messages messages[2];
    struct qhca_capture capture;
    struct memory memory;
    uint8_t *dm;
    int dm_fd;
    bool dm_used;
    struct port port;
};

/* Return the time of @clock in nanoseconds. */
uint64_t hca_clock(clockid_t clock);
/* Now, for the engine. */
uint64_t hca_now(void);
/*
 * Create the HCA described by @hca's name, socket, props, mac and faults, and
 * listen. Returns false after a message.
 */
bool hca_start(struct hca *hca);
/* Free it, after hca_pci_exit() for all. */
void hca_stop(struct hca *hca);
/*
 * Do what is due: timers, work left over, frames that wait, interrupts. Returns
 * when that has to be called again, UINT64_MAX: only after input.
 */
uint64_t hca_work(struct hca *hca);
/*
 * Before the server waits for long: let the guest ask it to look for doorbells
 * in memory. Returns false if there is work instead.
 */
bool hca_rest(struct hca *hca);
/* Send the messages of the interrupts that the engine has raised. */
void hca_send_irqs(struct hca *hca);
/* As after power-on; @lost: the machine is gone. */
void hca_reset(struct hca *hca, bool lost);
/*
 * Have new memory of the device if a machine that is gone may still have the
 * old one mapped: the next machine is not to meet it there. Of the old one,
 * what has been touched is freed with the last mapping, which takes a while.
 * Returns false if that has to be tried again.
 */
bool hca_renew_dm(struct hca *hca);
/* log.c: print a message about the HCA to standard error. */
void hca_log(struct hca *hca, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Print a message about what the guest does, if that is wanted: --verbose. */
void hca_note(struct hca *hca, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern bool hca_verbose;
/*
 * Print how many messages were left out, because there were too many, if it is
 * time for that. Returns when to call again, as hca_work().
 */
uint64_t hca_log_watch(struct hca *hca, uint64_t now);

/* connection.c: start the threads of the HCA. Returns false after a message. */
bool hca_start_threads(struct hca *hca);
void hca_end_threads(struct hca *hca);
/* Fill in what to poll. */
void hca_poll(const struct hca *hca, struct pollfd *fd);
/* There is input: a connection, or messages of the machine. */
void hca_input(struct hca *hca);
/*
 * Close a file descriptor of the machine's, later: close() can wait for its
 * other end.
 */
void hca_close_fd(vfu_ctx_t *vfu, int fd);
/* Unmap the machine's memory, later: much of it takes seconds. */
void hca_unmap(vfu_ctx_t *vfu, void *at, size_t len);
/* Whether some of that has yet to be done. */
bool hca_is_ending(struct hca *hca);
/* Close the connection, after a message that says why. */
void hca_hang_up(struct hca *hca, const char *why);
/* Watch over the connection. Returns when to call again, as hca_work(). */
uint64_t hca_watch(struct hca *hca, uint64_t now);

/* pci.c: the PCI function, towards the machine */
bool hca_pci_init(struct hca *hca);
void hca_pci_exit(struct hca *hca);
/* Let configuration space be as after power-on. */
void hca_pci_power_on(struct hca *hca);
/* Whether the machine lets the function access memory. */
bool hca_is_bus_master(const struct hca *hca);

#endif /* QHCA_SERVER_HCA_H */
