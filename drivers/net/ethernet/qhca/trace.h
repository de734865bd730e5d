/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* qhca.ko: tracepoints of commands and events. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM qhca

#if !defined(QHCA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define QHCA_TRACE_H

#include <linux/tracepoint.h>

#include "qhca.h"

#define QHCA_TRACE_DEV_LEN	16

/* A command has been given to the device. */
TRACE_EVENT(qhca_cmd_post,
	    TP_PROTO(struct qhca_dev *dev, u16 opcode, u32 slot, u32 token),
	    TP_ARGS(dev, opcode, slot, token),
	    TP_STRUCT__entry(__array(char, dev, QHCA_TRACE_DEV_LEN)
			     __field(u16, opcode)
			     __field(u32, slot)
			     __field(u32, token)
	    ),
	    TP_fast_assign(strscpy(__entry->dev, pci_name(dev->pdev), QHCA_TRACE_DEV_LEN);
			   __entry->opcode = opcode;
			   __entry->slot = slot;
			   __entry->token = token;
	    ),
	    TP_printk("%s opcode=%#x slot=%u token=%#x", __entry->dev, __entry->opcode,
		      __entry->slot, __entry->token)
);

/* A caller has taken the answer to its command. */
TRACE_EVENT(qhca_cmd_done,
	    TP_PROTO(struct qhca_dev *dev, u16 opcode, u32 slot, u32 token, u8 status, u32 obj),
	    TP_ARGS(dev, opcode, slot, token, status, obj),
	    TP_STRUCT__entry(__array(char, dev, QHCA_TRACE_DEV_LEN)
			     __field(u16, opcode)
			     __field(u8, status)
			     __field(u32, slot)
			     __field(u32, token)
			     __field(u32, obj)
	    ),
	    TP_fast_assign(strscpy(__entry->dev, pci_name(dev->pdev), QHCA_TRACE_DEV_LEN);
			   __entry->opcode = opcode;
			   __entry->status = status;
			   __entry->slot = slot;
			   __entry->token = token;
			   __entry->obj = obj;
	    ),
	    TP_printk("%s opcode=%#x slot=%u token=%#x status=%u obj=%#x", __entry->dev,
		      __entry->opcode, __entry->slot, __entry->token, __entry->status,
		      __entry->obj)
);

/* An event has been taken out of an event queue. */
TRACE_EVENT(qhca_eqe,
	    TP_PROTO(struct qhca_dev *dev, u32 eqn, u8 type, u32 obj, u32 arm_sn),
	    TP_ARGS(dev, eqn, type, obj, arm_sn),
	    TP_STRUCT__entry(__array(char, dev, QHCA_TRACE_DEV_LEN)
			     __field(u32, eqn)
			     __field(u8, type)
			     __field(u32, obj)
			     __field(u32, arm_sn)
	    ),
	    TP_fast_assign(strscpy(__entry->dev, pci_name(dev->pdev), QHCA_TRACE_DEV_LEN);
			   __entry->eqn = eqn;
			   __entry->type = type;
			   __entry->obj = obj;
			   __entry->arm_sn = arm_sn;
	    ),
	    TP_printk("%s eqn=%u type=%u obj=%#x arm_sn=%u", __entry->dev, __entry->eqn,
		      __entry->type, __entry->obj, __entry->arm_sn)
);

/* The device has failed; @fatal is its own reason, enum qhca_fatal. */
TRACE_EVENT(qhca_dead,
	    TP_PROTO(struct qhca_dev *dev, u32 fatal),
	    TP_ARGS(dev, fatal),
	    TP_STRUCT__entry(__array(char, dev, QHCA_TRACE_DEV_LEN)
			     __field(u32, fatal)
	    ),
	    TP_fast_assign(strscpy(__entry->dev, pci_name(dev->pdev), QHCA_TRACE_DEV_LEN);
			   __entry->fatal = fatal;
	    ),
	    TP_printk("%s fatal=%#x", __entry->dev, __entry->fatal)
);

#endif /* QHCA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
