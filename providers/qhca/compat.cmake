# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Provides what rdma-core lacks: the headers of the device and of the user ABI, from include/
# here or from QHCA_INCLUDE, and features that older releases lack. Not for rdma-core itself.

set(QHCA_INCLUDE "${CMAKE_CURRENT_SOURCE_DIR}/include" CACHE PATH
  "directory with qhca/queues.h and uapi/rdma/qhca-abi.h")
if (NOT EXISTS "${QHCA_INCLUDE}/qhca/queues.h")
  message(FATAL_ERROR "no qhca headers in QHCA_INCLUDE=${QHCA_INCLUDE}")
endif()

# Make tagless copies of the structures for DECLARE_DRV_CMD, as kernel-headers/ does for other
# ABIs. CMake runs again when the header changes.
set(QHCA_ABI "${QHCA_INCLUDE}/uapi/rdma/qhca-abi.h")
file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/kernel-abi")
execute_process(
  COMMAND "${PYTHON_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/buildlib/make_abi_structs.py"
    "${QHCA_ABI}" "${CMAKE_CURRENT_BINARY_DIR}/kernel-abi/qhca-abi.h"
  RESULT_VARIABLE QHCA_ABI_FAILED
)
if (QHCA_ABI_FAILED)
  message(FATAL_ERROR "no structures from ${QHCA_ABI}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${QHCA_ABI}")
include_directories("${QHCA_INCLUDE}" "${QHCA_INCLUDE}/uapi" "${CMAKE_CURRENT_BINARY_DIR}")

# Releases differ, most of all in the private interface for providers; compat.h provides what
# older ones lack. Each row is a macro, a header, and a pattern: the macro is defined if the
# header matches the pattern.
function(qhca_probe macro header pattern)
  file(READ "${PROJECT_SOURCE_DIR}/libibverbs/${header}" text)
  string(REGEX REPLACE "[ \t\n]+" " " text "${text}")
  if (text MATCHES "${pattern}")
    add_definitions("-D${macro}")
  endif()
endfunction()
qhca_probe(QHCA_HAVE_FLUSH verbs.h "[*]wr_flush")
qhca_probe(QHCA_HAVE_REG_DMABUF_DRIVER driver.h "ibv_cmd_reg_dmabuf_mr.[^;]*ibv_command_buffer")
qhca_probe(QHCA_HAVE_FD_ARR driver.h "ibv_cmd_get_context.[^;]*ibv_fd_arr")
qhca_probe(QHCA_HAVE_CREATE_QP_DRIVER driver.h "ibv_cmd_create_qp_ex2.[^;]*ibv_command_buffer")
qhca_probe(QHCA_HAVE_QUERY_PORT_SPEED driver.h "[*]query_port_speed")
qhca_probe(QHCA_HAVE_DMAH driver.h "[*]alloc_dmah")
qhca_probe(QHCA_HAVE_CQ_PROV_ATTR driver.h "ibv_cmd_create_cq_ex.[^;]*prov_attr")
