/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network card of the device under test, whose interface QHCA_IF names: its settings, and
 * whether frames get through. The gateway of the machine's network refuses connections.
 */
#ifndef SELFTESTS_CARD_H
#define SELFTESTS_CARD_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARD_TEXT	16384

/* Has to be called first. Skips the test if there is no such interface, or without root. */
void card_open(void);
/* The calls below return 0 or an errno value. @req needs no name. */
int card_ioctl(unsigned long request, struct ifreq *req);
int card_ethtool(void *cmd);
/* Reads or writes a file of the interface in sysfs; @text ends without a newline. */
int card_read(const char *file, char *text, size_t len);
int card_write(const char *file, const char *text);
/* The number of the interface, and the name of its PCI function. */
int card_index(void);
const char *card_function(void);

/* Returns the key and the table of RSS context @context; 0: the one of all other frames. */
struct card_rss {
	uint32_t size, key_size;
	uint32_t queue[128];
	uint8_t key[40];
};

int card_rss(uint32_t context, struct card_rss *rss);

/* Writes all settings as text. Fails the test if one cannot be read. */
void card_settings(char *text, size_t len);
/* Fails the test unless @text is the settings of before; says which line is not. */
bool card_same(const char *text, const char *before);

/*
 * Fails the test unless frames leave through each send queue, and arrive in each receive queue that
 * the table names.
 */
void card_works(void);
/* Opens a connection from this port. Fails the test if it is not refused. */
void card_flow(uint16_t port);
/* Returns a port such that answers to it arrive in @queue; not the @skip first ones. */
uint16_t card_port(unsigned int queue, unsigned int skip);
/* Fails the test unless answers to @port arrive in @queue. */
void card_lands(uint16_t port, unsigned int queue);

#endif /* SELFTESTS_CARD_H */
